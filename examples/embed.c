/* SPDX-License-Identifier: Apache-2.0 */
/* embed.c - which sentences mean the same? Runs a sentence embedding model (all-MiniLM-L6-v2) and prints how similar
 * they are.
 *     embed model.onnx vocab.txt ["a sentence" ...]
 * One rlx_model_t serves batches of every size and length: it is opened once and plans for new sizes by itself. */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */
#include <math.h>
#include <rlx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wordpiece.h"

#define MAX_SENTENCES 64
#define MAX_BATCH 4
#define MAX_TOKENS 128

static const char* const kSentences[] = {"A man is playing a guitar on the street.",
                                         "Someone performs music outdoors with a string instrument.",
                                         "The concert was sold out within minutes.",
                                         "The cat sleeps on the warm windowsill.",
                                         "A kitten naps in the sun.",
                                         "My dog barks at every bicycle.",
                                         "Interest rates were raised by a quarter of a percent.",
                                         "The central bank makes borrowing more expensive.",
                                         "Stocks fell sharply after the announcement.",
                                         "Preheat the oven and whisk the eggs with sugar.",
                                         "How do I bake a simple sponge cake?",
                                         "Le chat dort au soleil."};

typedef struct sentences {
  const char* const* text;
  size_t count;
  float* vector[MAX_SENTENCES]; /* of length 1 */
  size_t width;                 /* numbers in a vector */
} sentences_t;

static void fail(const char* why) {
  fprintf(stderr, "embed: %s\n", why);
  exit(1);
}

static void check(rlx_status_t* status) {
  char why[1024];
  if (rlx_status_take(status, why, sizeof why) != RLX_OK) fail(why);
}

static double milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

/* Tokens of a few sentences as the rows of a matrix, as wide as the longest sentence; the mask says which tokens are
 * real.
 */
typedef struct batch {
  int64_t dims[2]; /* rows, columns */
  int64_t ids[MAX_BATCH * MAX_TOKENS], mask[MAX_BATCH * MAX_TOKENS], types[MAX_BATCH * MAX_TOKENS];
} batch_t;

static void make_batch(batch_t* batch, const wordpiece_t* vocab, const char* const* text, size_t rows) {
  int64_t tokens[MAX_BATCH][MAX_TOKENS];
  size_t lengths[MAX_BATCH], longest = 0, i, j;
  for (i = 0; i < rows; i++) {
    lengths[i] = wordpiece_encode(vocab, text[i], tokens[i], MAX_TOKENS);
    if (lengths[i] > longest) longest = lengths[i];
  }
  batch->dims[0] = (int64_t)rows;
  batch->dims[1] = (int64_t)longest;
  for (i = 0; i < rows; i++) {
    for (j = 0; j < longest; j++) {
      size_t at = i * longest + j;
      batch->mask[at] = j < lengths[i];
      batch->ids[at] = j < lengths[i] ? tokens[i][j] : 0;
      batch->types[at] = 0;
    }
  }
}

/* f32[rows, columns, width]; the caller releases it. */
static rlx_tensor_t* run(rlx_env_t* env, rlx_model_t* model, batch_t* batch) {
  static const char* const kNames[] = {"input_ids", "attention_mask", "token_type_ids"};
  size_t bytes = (size_t)(batch->dims[0] * batch->dims[1]) * sizeof(int64_t), i;
  rlx_tensor_t *in[3], *hidden;
  check(rlx_tensor_wrap(env, RLX_I64, batch->dims, 2, batch->ids, bytes, NULL, NULL, &in[0]));
  check(rlx_tensor_wrap(env, RLX_I64, batch->dims, 2, batch->mask, bytes, NULL, NULL, &in[1]));
  check(rlx_tensor_wrap(env, RLX_I64, batch->dims, 2, batch->types, bytes, NULL, NULL, &in[2]));
  check(rlx_model_run(model, NULL, kNames, in, 3, NULL, &hidden, 1, NULL));
  for (i = 0; i < 3; i++) rlx_tensor_release(in[i]);
  return hidden;
}

/* The mean of the rows of real tokens, scaled to length 1. */
static float* pool(const float* hidden, const int64_t* mask, size_t columns, size_t width) {
  float* mean = calloc(width, sizeof *mean);
  double square = 0;
  size_t i, j;
  if (!mean) fail("out of memory");
  for (i = 0; i < columns; i++)
    for (j = 0; mask[i] && j < width; j++) mean[j] += hidden[i * width + j];
  for (j = 0; j < width; j++) square += (double)mean[j] * mean[j];
  for (j = 0; j < width; j++) mean[j] = (float)(mean[j] / sqrt(square));
  return mean;
}

/* Runs batches of 1, 2, ... sentences. Each runs twice, because the first run at new sizes includes planning. */
static void embed(rlx_env_t* env, rlx_model_t* model, const wordpiece_t* vocab, sentences_t* all) {
  size_t first, rows = 1, i;
  printf("sentences x tokens   first run   next run   per sentence\n");
  for (first = 0; first < all->count; first += rows, rows = rows % MAX_BATCH + 1) {
    batch_t batch;
    rlx_tensor_t* hidden;
    int64_t dims[3];
    double begin, middle, end;
    if (rows > all->count - first) rows = all->count - first;
    make_batch(&batch, vocab, all->text + first, rows);
    begin = milliseconds();
    rlx_tensor_release(run(env, model, &batch));
    middle = milliseconds();
    hidden = run(env, model, &batch);
    end = milliseconds();
    printf("%9lu x %-6ld %9.2f ms %7.2f ms %11.2f ms\n", (unsigned long)rows, (long)batch.dims[1], middle - begin,
           end - middle, (end - middle) / (double)rows);
    if (rlx_tensor_shape(hidden, dims, 3) != 3 || rlx_tensor_dtype(hidden) != RLX_F32 || dims[1] != batch.dims[1])
      fail("the model's output is not f32[batch, tokens, width]");
    all->width = (size_t)dims[2];
    for (i = 0; i < rows; i++) {
      size_t columns = (size_t)dims[1];
      const float* row = (const float*)rlx_tensor_data(hidden) + i * columns * all->width;
      all->vector[first + i] = pool(row, batch.mask + i * columns, columns, all->width);
    }
    rlx_tensor_release(hidden);
  }
}

static double similarity(const sentences_t* all, size_t a, size_t b) {
  double sum = 0;
  size_t i;
  for (i = 0; i < all->width; i++) sum += (double)all->vector[a][i] * all->vector[b][i];
  return sum;
}

static void draw(const sentences_t* all) {
  static const char* const kShades[] = {"  ", "\xe2\x96\x91\xe2\x96\x91", "\xe2\x96\x92\xe2\x96\x92",
                                        "\xe2\x96\x93\xe2\x96\x93", "\xe2\x96\x88\xe2\x96\x88"};
  size_t i, j;
  printf("\nalike: '%s' < .2 '%s' < .4 '%s' < .6 '%s' < .8 '%s'\n", kShades[0], kShades[1], kShades[2], kShades[3],
         kShades[4]);
  for (i = 0; i < all->count; i++) {
    size_t closest = i;
    double best = -2;
    printf("  %2lu ", (unsigned long)i + 1);
    for (j = 0; j < all->count; j++) {
      double alike = similarity(all, i, j);
      int shade = alike < 0.2 ? 0 : alike >= 0.8 ? 4 : (int)(alike * 5);
      printf("%s", kShades[shade]);
      if (j != i && alike > best) best = alike, closest = j;
    }
    printf("  %s", all->text[i]);
    if (closest != i) printf(" (%.2f: %lu)", best, (unsigned long)closest + 1);
    printf("\n");
  }
}

int main(int argc, char** argv) {
  rlx_env_t* env;
  rlx_model_t* model;
  wordpiece_t* vocab;
  sentences_t all = {NULL, 0, {NULL}, 0};
  double begin;
  size_t i;
  if (argc < 3) fail("usage: embed model.onnx vocab.txt [\"a sentence\" ...]");
  all.text = argc > 3 ? (const char* const*)argv + 3 : kSentences;
  all.count = argc > 3 ? (size_t)argc - 3 : sizeof kSentences / sizeof kSentences[0];
  if (all.count > MAX_SENTENCES) fail("at most 64 sentences");
  if (!(vocab = wordpiece_open(argv[2]))) fail("cannot read the vocabulary");
  begin = milliseconds();
  check(rlx_env_create(NULL, NULL, &env));
  check(rlx_model_open(env, argv[1], NULL, &model));
  printf("%s opened in %.0f ms by librlx %s\n", argv[1], milliseconds() - begin, rlx_version_string());
  embed(env, model, vocab, &all);
  draw(&all);
  for (i = 0; i < all.count; i++) free(all.vector[i]);
  wordpiece_close(vocab);
  rlx_model_release(model);
  rlx_env_release(env);
  return 0;
}
