/* SPDX-License-Identifier: Apache-2.0 */
/* digits.c - reads digits: the smallest program that uses a model file.
 *     digits digits.onnx picture.txt ...
 * A picture is 16 lines of 16 characters, ten levels of ink " .:-=+*#%@". All pictures run as one batch. */
#include <rlx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 16
#define MAX_PICTURES 16

static void fail(const char* what, const char* why) {
  fprintf(stderr, "digits: %s%s\n", what, why);
  exit(1);
}

static void check(rlx_status_t* status) {
  char why[1024];
  if (rlx_status_take(status, why, sizeof why) != RLX_OK) fail("", why);
}

/* Ink from 0 to 1. The rest of a short line is blank. */
static void read_picture(const char* path, float* ink) {
  static const char kLevels[] = " .:-=+*#%@";
  char line[256];
  int row, column;
  FILE* file = fopen(path, "r");
  if (!file) fail("cannot open ", path);
  for (row = 0; row < SIZE; row++) {
    if (!fgets(line, sizeof line, file)) fail("less than 16 lines in ", path);
    line[strcspn(line, "\r\n")] = 0;
    if (strlen(line) > SIZE || strspn(line, kLevels) != strlen(line)) fail("not a picture of 16 x 16: ", path);
    for (column = 0; column < SIZE; column++) {
      const char* level = (size_t)column < strlen(line) ? strchr(kLevels, line[column]) : kLevels;
      ink[row * SIZE + column] = (float)(level - kLevels) / 9;
    }
    printf("  %s\n", line);
  }
  fclose(file);
}

static int most_probable(const float* probability) {
  int digit, best = 0;
  for (digit = 1; digit < 10; digit++)
    if (probability[digit] > probability[best]) best = digit;
  return best;
}

int main(int argc, char** argv) {
  float ink[MAX_PICTURES * SIZE * SIZE];
  int64_t dims[4] = {0, 1, SIZE, SIZE}, n = argc - 2, i;
  rlx_env_t* env;
  rlx_model_t* model;
  rlx_tensor_t *image, *probabilities;
  const float* probability;

  if (n < 1 || n > MAX_PICTURES) fail("usage: ", "digits digits.onnx picture.txt ... (at most 16)");
  for (i = 0; i < n; i++) read_picture(argv[2 + i], ink + i * SIZE * SIZE);
  dims[0] = n;

  check(rlx_env_create(NULL, NULL, &env));
  check(rlx_model_open(env, argv[1], NULL, &model));
  check(rlx_tensor_wrap(env, RLX_F32, dims, 4, ink, (size_t)n * SIZE * SIZE * sizeof *ink, NULL, NULL, &image));
  check(rlx_model_run(model, NULL, NULL, &image, 1, NULL, &probabilities, 1, NULL));
  if (rlx_tensor_bytes(probabilities) != (size_t)n * 10 * sizeof *probability)
    fail(argv[1], ": not ten probabilities a picture");

  probability = rlx_tensor_data(probabilities);
  for (i = 0; i < n; i++, probability += 10) {
    int digit = most_probable(probability);
    printf("%s shows a %d (%.1f %%)\n", argv[2 + i], digit, 100 * probability[digit]);
  }
  rlx_tensor_release(probabilities);
  rlx_tensor_release(image);
  rlx_model_release(model);
  rlx_env_release(env);
  return 0;
}
