"""From a file to a dataset: finding its format, the policies of the job spec, and what readers share."""
