/* The sum kernel as a C compiler makes it: gcc -O3 -march=native -DWIDTH=... ; for a run of rows. */

#include <stdint.h>

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
#define PIECES (WIDTH / LANES)
#define REST (WIDTH % LANES)
#define AHEAD 8

typedef float piece __attribute__((vector_size(4 * LANES), aligned(4)));

static inline void add(piece *total, float *rest, const float *row)
{
    for (int p = 0; p < PIECES; p++)
        total[p] += ((const piece *)row)[p];
    for (int k = 0; k < REST; k++)
        rest[k] += row[PIECES * LANES + k];
}

void sum_rows(const int64_t *indptr, const int32_t *columns, const uint8_t *add_loop, const float *table,
              const float *post, float *out, int64_t num_edges, int64_t begin, int64_t end)
{
    for (int64_t v = begin; v < end; v++) {
        piece total[PIECES + 1] = {0};
        float rest[LANES] = {0};
        for (int64_t e = indptr[v]; e < indptr[v + 1]; e++) {
            int64_t ahead = e + AHEAD < num_edges ? e + AHEAD : num_edges - 1;
            for (int64_t k = 0; k < WIDTH; k += 16)
                __builtin_prefetch(table + (int64_t)columns[ahead] * WIDTH + k);
            add(total, rest, table + (int64_t)columns[e] * WIDTH);
        }
        if (add_loop[v])
            add(total, rest, table + v * WIDTH);
        for (int p = 0; p < PIECES; p++)
            ((piece *)(out + v * WIDTH))[p] = total[p] * post[v];
        for (int k = 0; k < REST; k++)
            out[v * WIDTH + PIECES * LANES + k] = rest[k] * post[v];
    }
}
