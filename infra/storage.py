"""What outlives a server: the bucket, which outlives the stack, too; and the records of jobs and of their members."""

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_s3 as s3
from constructs import Construct

from common.cloud_names import RUNS
from infra.context import Context


class Storage(Construct):
    def __init__(self, scope: Construct, context: Context) -> None:
        super().__init__(scope, "Storage")
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            versioned=True,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            lifecycle_rules=_lifecycle(context),
            removal_policy=RemovalPolicy.RETAIN,
        )
        # On the bucket itself: the CDK's own way to turn this on is a function that it would deploy for it.
        plain = self.bucket.node.default_child
        assert isinstance(plain, s3.CfnBucket)
        plain.add_property_override("NotificationConfiguration.EventBridgeConfiguration.EventBridgeEnabled", True)
        self.jobs = self._table("Jobs", f"{context.name}-jobs", "id")
        self.members = self._table("Members", f"{context.name}-members", "job_id", "member")

    def _table(self, name: str, table_name: str, key: str, sort_key: str | None = None) -> dynamodb.Table:
        text = dynamodb.AttributeType.STRING
        return dynamodb.Table(
            self,
            name,
            table_name=table_name,
            partition_key=dynamodb.Attribute(name=key, type=text),
            sort_key=dynamodb.Attribute(name=sort_key, type=text) if sort_key else None,
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute="expires",
            removal_policy=RemovalPolicy.DESTROY,
        )


def _lifecycle(context: Context) -> list[s3.LifecycleRule]:
    """Nothing that is there is ever deleted; what was replaced is, and checkpoints are replaced all the time."""
    return [
        s3.LifecycleRule(
            id="replaced",
            noncurrent_version_expiration=Duration.days(context.old_version_days),
            expired_object_delete_marker=True,
        ),
        s3.LifecycleRule(id="abandoned-uploads", abort_incomplete_multipart_upload_after=Duration.days(1)),
        s3.LifecycleRule(
            id="old-runs",
            prefix=RUNS,
            transitions=[
                s3.Transition(storage_class=s3.StorageClass.INTELLIGENT_TIERING, transition_after=Duration.days(30))
            ],
        ),
    ]
