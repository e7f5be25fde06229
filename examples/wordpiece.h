/* SPDX-License-Identifier: Apache-2.0 */
/* wordpiece.h - sentences to the token ids of an uncased BERT model, by its vocab.txt (one token per line, its id is
 * the line). Text is UTF-8; bytes that are not are ignored. Case and accents are folded for Latin, Greek, Cyrillic,
 * kana and Hangul; letters of other scripts are looked up as they stand. An opened vocabulary is never changed: any
 * number of threads may use it. */
#ifndef WORDPIECE_H
#define WORDPIECE_H
#include <stddef.h>
#include <stdint.h>

typedef struct wordpiece wordpiece_t;

wordpiece_t* wordpiece_open(
    const char* vocab_path);              /* NULL: no such file, no memory, or [CLS], [SEP], [UNK] are missing */
void wordpiece_close(wordpiece_t* vocab); /* NULL does nothing */

/* Writes [CLS], the pieces of the text, [SEP]; returns how many that are. What exceeds the capacity (2 or more) is cut
 * off. */
size_t wordpiece_encode(const wordpiece_t* vocab, const char* text, int64_t* ids, size_t capacity);

#endif
