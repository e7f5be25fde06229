/* SPDX-License-Identifier: Apache-2.0 */
/* wordpiece.c - BERT's two steps: split a text into folded words and punctuation, then each word into the longest
 * pieces that the vocabulary has. The vocabulary is one block of text; a hash table of slots points into it. */
#include "wordpiece.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORD 100 /* letters; a longer word is [UNK], as in BERT */

typedef unsigned long codepoint_t;
typedef struct slot {
  const char* text; /* without its "##"; NULL: an empty slot */
  size_t length;
  int continues; /* it was "##text": a piece inside a word */
  int64_t id;
} slot_t;
struct wordpiece {
  char* text;
  slot_t* slots;
  size_t mask; /* slots - 1, a power of two less one */
  int64_t cls, sep, unk;
};

/* ---- characters ---- */

enum { LETTER, DROP, SPACE, PUNCTUATION, IDEOGRAPH };
/* clang-format off */
/* Characters above ASCII that are not letters: Unicode's Zs, P*, C* and Mn as far as modern text uses them, and the
 * blocks that BERT calls Chinese. */
static const struct {
  codepoint_t first, last;
  int kind;
} kKinds[] = {
    {0x80, 0x9F, DROP},            {0xA0, 0xA0, SPACE},           {0xA1, 0xA1, PUNCTUATION},
    {0xA7, 0xA7, PUNCTUATION},     {0xAB, 0xAB, PUNCTUATION},     {0xAD, 0xAD, DROP},
    {0xB6, 0xB7, PUNCTUATION},     {0xBB, 0xBB, PUNCTUATION},     {0xBF, 0xBF, PUNCTUATION},
    {0x300, 0x36F, DROP},          {0x37E, 0x37E, PUNCTUATION},   {0x387, 0x387, PUNCTUATION},
    {0x483, 0x487, DROP},          {0x55A, 0x55F, PUNCTUATION},   {0x589, 0x58A, PUNCTUATION},
    {0x591, 0x5BD, DROP},          {0x5BE, 0x5BE, PUNCTUATION},   {0x5BF, 0x5BF, DROP},
    {0x5C0, 0x5C0, PUNCTUATION},   {0x5C1, 0x5C2, DROP},          {0x5C3, 0x5C3, PUNCTUATION},
    {0x5C4, 0x5C5, DROP},          {0x5F3, 0x5F4, PUNCTUATION},   {0x600, 0x605, DROP},
    {0x60C, 0x60D, PUNCTUATION},   {0x610, 0x61A, DROP},          {0x61B, 0x61B, PUNCTUATION},
    {0x61C, 0x61C, DROP},          {0x61D, 0x61F, PUNCTUATION},   {0x64B, 0x65F, DROP},
    {0x66A, 0x66D, PUNCTUATION},   {0x670, 0x670, DROP},          {0x6D4, 0x6D4, PUNCTUATION},
    {0x900, 0x902, DROP},          {0x93C, 0x93C, DROP},          {0x941, 0x948, DROP},
    {0x94D, 0x94D, DROP},          {0x964, 0x965, PUNCTUATION},   {0x970, 0x970, PUNCTUATION},
    {0xE31, 0xE31, DROP},          {0xE34, 0xE3A, DROP},          {0xE47, 0xE4E, DROP},
    {0xE4F, 0xE4F, PUNCTUATION},   {0x1680, 0x1680, SPACE},       {0x2000, 0x200A, SPACE},
    {0x200B, 0x200F, DROP},        {0x2010, 0x2027, PUNCTUATION}, {0x2028, 0x2029, SPACE},
    {0x202A, 0x202E, DROP},        {0x202F, 0x202F, SPACE},       {0x2030, 0x2043, PUNCTUATION},
    {0x2045, 0x2051, PUNCTUATION}, {0x2053, 0x205E, PUNCTUATION}, {0x205F, 0x205F, SPACE},
    {0x2060, 0x206F, DROP},        {0x207D, 0x207E, PUNCTUATION}, {0x20D0, 0x20DC, DROP},
    {0x2308, 0x230B, PUNCTUATION}, {0x2768, 0x2775, PUNCTUATION}, {0x27E6, 0x27EF, PUNCTUATION},
    {0x2E00, 0x2E2E, PUNCTUATION}, {0x2E30, 0x2E4F, PUNCTUATION}, {0x3000, 0x3000, SPACE},
    {0x3001, 0x3003, PUNCTUATION}, {0x3008, 0x3011, PUNCTUATION}, {0x3014, 0x301F, PUNCTUATION},
    {0x302A, 0x302D, DROP},        {0x3030, 0x3030, PUNCTUATION}, {0x303D, 0x303D, PUNCTUATION},
    {0x3099, 0x309A, DROP},        {0x30A0, 0x30A0, PUNCTUATION}, {0x30FB, 0x30FB, PUNCTUATION},
    {0x3400, 0x4DBF, IDEOGRAPH},   {0x4E00, 0x9FFF, IDEOGRAPH},   {0xE000, 0xF8FF, DROP},
    {0xF900, 0xFAFF, IDEOGRAPH},   {0xFE00, 0xFE0F, DROP},        {0xFE10, 0xFE19, PUNCTUATION},
    {0xFE20, 0xFE2F, DROP},        {0xFE30, 0xFE52, PUNCTUATION}, {0xFE54, 0xFE61, PUNCTUATION},
    {0xFEFF, 0xFEFF, DROP},        {0xFF01, 0xFF03, PUNCTUATION}, {0xFF05, 0xFF0A, PUNCTUATION},
    {0xFF0C, 0xFF0F, PUNCTUATION}, {0xFF1A, 0xFF1B, PUNCTUATION}, {0xFF1F, 0xFF20, PUNCTUATION},
    {0xFF3B, 0xFF3D, PUNCTUATION}, {0xFF3F, 0xFF3F, PUNCTUATION}, {0xFF5B, 0xFF5B, PUNCTUATION},
    {0xFF5D, 0xFF5D, PUNCTUATION}, {0xFF5F, 0xFF65, PUNCTUATION}, {0xFFFD, 0xFFFD, DROP},
    {0x20000, 0x2A6DF, IDEOGRAPH}, {0x2A700, 0x2CEAF, IDEOGRAPH}, {0x2F800, 0x2FA1F, IDEOGRAPH},
    {0xE0000, 0x10FFFF, DROP}};

/* clang-format on */

static int kind_of(codepoint_t c) {
  size_t low = 0, high = sizeof kKinds / sizeof kKinds[0];
  if (c == ' ' || c == '\t' || c == '\n' || c == '\r') return SPACE;
  if (c < 0x20 || c == 0x7F) return DROP;
  if (c < 0x80)
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? LETTER : PUNCTUATION;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (c > kKinds[middle].last)
      low = middle + 1;
    else
      high = middle;
  }
  return low < sizeof kKinds / sizeof kKinds[0] && c >= kKinds[low].first ? kKinds[low].kind : LETTER;
}

/* clang-format off */
/* The small letter without its accents; '.' if that is not in ASCII. Columns are code points, 64 per row. */
static const char kLatin[] =
    "aaaaaa.ceeeeiiii.nooooo..uuuuy..aaaaaa.ceeeeiiii.nooooo..uuuuy.y" /* U+00C0 */
    "aaaaaaccccccccdd..eeeeeeeeeegggggggghh..iiiiiiiii...jjkk.llllll." /* U+0100 */
    "...nnnnnn...oooooo..rrrrrrsssssssstttt..uuuuuuuuuuuuwwyyyzzzzzz." /* U+0140 */
    "................................oo.............uu..............." /* U+0180 */
    ".............aaiioouuuuuuuuuu.aaaa....ggkkoooo..j...gg..nnaa...." /* U+01C0 */
    "aaaaeeeeiiiioooorrrruuuusstt..hh......aaeeooooooooyy............" /* U+0200 */
    "................";                                                /* U+0240 */
static const char kLatinExtended[] =
    "aabbbbbbccddddddddddeeeeeeeeeeffgghhhhhhhhhhiiiikkkkkkllllllllmm"  /* U+1E00 */
    "mmmmnnnnnnnnoooooooopppprrrrrrrrssssssssssttttttttuuuuuuuuuuvvvv"  /* U+1E40 */
    "wwwwwwwwwwxxxxyyzzzzzzhtwy......aaaaaaaaaaaaaaaaaaaaaaaaeeeeeeee"  /* U+1E80 */
    "eeeeeeeeiiiioooooooooooooooooooooooouuuuuuuuuuuuuuyyyyyyyy......"; /* U+1EC0 */

/* Case, then accents, of the letters that the table above leaves: every `step`-th code point of a range moves by
 * `delta`. */
static const struct {
  codepoint_t first, last;
  int step, delta;
} kMoves[] = {
    {'A', 'Z', 1, 32},                 {0xC6, 0xD6, 1, 32},               {0xD8, 0xDE, 1, 32},
    {0x110, 0x136, 2, 1},              {0x13F, 0x141, 2, 1},              {0x14A, 0x176, 2, 1},
    {0x386, 0x386, 1, 38},             {0x388, 0x38A, 1, 37},             {0x38C, 0x38C, 1, 64},
    {0x38E, 0x38F, 1, 63},             {0x391, 0x3AB, 1, 32},             {0x400, 0x40F, 1, 80},
    {0x410, 0x42F, 1, 32},             {0x531, 0x556, 1, 48},             {0x460, 0x480, 2, 1},
    {0x48A, 0x4BE, 2, 1},              {0x1E9E, 0x1E9E, 1, -7615},        {0xFF21, 0xFF3A, 1, 32},
    {0x390, 0x390, 1, 41},             {0x3AC, 0x3AC, 1, 5},              {0x3AD, 0x3AD, 1, 8},
    {0x3AE, 0x3AE, 1, 9},              {0x3AF, 0x3AF, 1, 10},             {0x3B0, 0x3B0, 1, 21},
    {0x3CA, 0x3CA, 1, -17},            {0x3CB, 0x3CB, 1, -6},             {0x3CC, 0x3CC, 1, -13},
    {0x3CD, 0x3CD, 1, -8},             {0x3CE, 0x3CE, 1, -5},             {0x439, 0x439, 1, -1},
    {0x450, 0x450, 1, -27},            {0x451, 0x451, 1, -28},            {0x453, 0x453, 1, -32},
    {0x457, 0x457, 1, -1},             {0x45C, 0x45C, 1, -34},            {0x45D, 0x45D, 1, -37},
    {0x45E, 0x45E, 1, -27},            {0x304C, 0x3062, 2, -1},           {0x3065, 0x3069, 2, -1},
    {0x3070, 0x307C, 3, -1},           {0x3071, 0x307D, 3, -2},           {0x3094, 0x3094, 1, -78},
    {0x30AC, 0x30C2, 2, -1},           {0x30C5, 0x30C9, 2, -1},           {0x30D0, 0x30DC, 3, -1},
    {0x30D1, 0x30DD, 3, -2},           {0x30F4, 0x30F4, 1, -78},          {0x2260, 0x2260, 1, '=' - 0x2260}};

/* clang-format on */

static codepoint_t fold(codepoint_t c) {
  size_t i;
  char base = '.';
  if (c >= 0xC0 && c < 0x250) base = kLatin[c - 0xC0];
  if (c >= 0x1E00 && c < 0x1F00) base = kLatinExtended[c - 0x1E00];
  if (base != '.') return (codepoint_t)base;
  for (i = 0; i < sizeof kMoves / sizeof kMoves[0]; i++)
    if (c >= kMoves[i].first && c <= kMoves[i].last && (c - kMoves[i].first) % (codepoint_t)kMoves[i].step == 0)
      c = (codepoint_t)((long)c + kMoves[i].delta);
  return c;
}

/* Decodes one character and advances. Bytes that are not UTF-8 give U+FFFD and advance by one byte. Stops at the final
 * 0. */
static codepoint_t next_codepoint(const char** text) {
  static const codepoint_t kLeast[] = {0, 0x80, 0x800, 0x10000}; /* anything smaller has a shorter spelling */
  const unsigned char* p = (const unsigned char*)*text;
  int i, more = *p < 0x80 ? 0 : *p >= 0xF0 ? 3 : *p >= 0xE0 ? 2 : 1;
  codepoint_t c = more ? *p & (0x3Fu >> more) : *p;
  (*text)++;
  if ((*p >= 0x80 && *p < 0xC0) || *p > 0xF7) return 0xFFFD;
  for (i = 1; i <= more; i++) {
    if ((p[i] & 0xC0) != 0x80) return 0xFFFD;
    c = (c << 6) | (p[i] & 0x3F);
  }
  if (c < kLeast[more] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return 0xFFFD;
  *text += more;
  return c;
}

static size_t put_codepoint(char* to, codepoint_t c) {
  if (c < 0x80) return to[0] = (char)c, 1;
  if (c < 0x800) return to[0] = (char)(0xC0 | (c >> 6)), to[1] = (char)(0x80 | (c & 63)), 2;
  if (c < 0x10000) {
    to[0] = (char)(0xE0 | (c >> 12)), to[1] = (char)(0x80 | ((c >> 6) & 63)), to[2] = (char)(0x80 | (c & 63));
    return 3;
  }
  to[0] = (char)(0xF0 | (c >> 18)), to[1] = (char)(0x80 | ((c >> 12) & 63));
  to[2] = (char)(0x80 | ((c >> 6) & 63)), to[3] = (char)(0x80 | (c & 63));
  return 4;
}

/* ---- the vocabulary ---- */

static size_t hash_of(const char* text, size_t length, int continues) {
  unsigned long hash = 2166136261ul + (unsigned long)continues; /* FNV-1a */
  while (length--) hash = ((hash ^ (unsigned char)*text++) * 16777619ul) & 0xFFFFFFFFul;
  return (size_t)hash;
}

/* The slot of a piece, or the empty one where it would go. */
static slot_t* find(const wordpiece_t* vocab, const char* text, size_t length, int continues) {
  size_t at = hash_of(text, length, continues) & vocab->mask;
  for (;; at = (at + 1) & vocab->mask) {
    slot_t* slot = &vocab->slots[at];
    if (!slot->text) return slot;
    if (slot->length == length && slot->continues == continues && !memcmp(slot->text, text, length)) return slot;
  }
}

static int64_t id_of(const wordpiece_t* vocab, const char* text, size_t length, int continues) {
  const slot_t* slot = find(vocab, text, length, continues);
  return slot->text ? slot->id : -1;
}

static char* read_file(const char* path) {
  char* text = NULL;
  long size;
  FILE* file = fopen(path, "rb");
  if (!file) return NULL;
  if (!fseek(file, 0, SEEK_END) && (size = ftell(file)) >= 0 && !fseek(file, 0, SEEK_SET) &&
      (text = malloc((size_t)size + 1))) {
    if (fread(text, 1, (size_t)size, file) != (size_t)size) {
      free(text);
      text = NULL;
    } else {
      text[size] = 0;
    }
  }
  fclose(file);
  return text;
}

static int index_tokens(wordpiece_t* vocab) {
  const char* line;
  size_t lines = 1;
  int64_t id = 0;
  for (line = vocab->text; *line; line++) lines += *line == '\n';
  for (vocab->mask = 1; vocab->mask < 2 * lines; vocab->mask = 2 * vocab->mask + 1) continue;
  if (!(vocab->slots = calloc(vocab->mask + 1, sizeof *vocab->slots))) return 0;
  for (line = vocab->text; *line; id++) {
    size_t length = strcspn(line, "\r\n");
    int continues = length > 2 && !memcmp(line, "##", 2);
    slot_t* slot = find(vocab, line + 2 * continues, length - (size_t)(2 * continues), continues);
    slot->text = line + 2 * continues, slot->length = length - (size_t)(2 * continues);
    slot->continues = continues, slot->id = id;
    line += length;
    line += *line == '\r';
    line += *line == '\n';
  }
  vocab->cls = id_of(vocab, "[CLS]", 5, 0);
  vocab->sep = id_of(vocab, "[SEP]", 5, 0);
  vocab->unk = id_of(vocab, "[UNK]", 5, 0);
  return vocab->cls >= 0 && vocab->sep >= 0 && vocab->unk >= 0;
}

wordpiece_t* wordpiece_open(const char* vocab_path) {
  wordpiece_t* vocab = calloc(1, sizeof *vocab);
  if (vocab && (vocab->text = read_file(vocab_path)) && index_tokens(vocab)) return vocab;
  wordpiece_close(vocab);
  return NULL;
}

void wordpiece_close(wordpiece_t* vocab) {
  if (!vocab) return;
  free(vocab->slots);
  free(vocab->text);
  free(vocab);
}

/* ---- encoding ---- */

typedef struct word {
  char bytes[4 * MAX_WORD];
  size_t length, letters; /* letters beyond MAX_WORD are counted, not stored */
} word_t;
typedef struct output {
  const wordpiece_t* vocab;
  int64_t* ids;
  size_t count, room; /* count may exceed room: what is beyond is cut off */
  word_t word;
} output_t;

static void put_letter(word_t* word, codepoint_t c) {
  if (word->letters++ < MAX_WORD) word->length += put_codepoint(word->bytes + word->length, c);
}

/* Hangul syllables are accented letters to BERT: it takes them apart (Unicode 3.12). */
static void put_folded(word_t* word, codepoint_t c) {
  codepoint_t syllable = c - 0xAC00;
  if (c < 0xAC00 || c > 0xD7A3) {
    put_letter(word, fold(c));
    return;
  }
  put_letter(word, 0x1100 + syllable / 588);
  put_letter(word, 0x1161 + syllable % 588 / 28);
  if (syllable % 28) put_letter(word, 0x11A7 + syllable % 28);
}

static void put_id(output_t* out, int64_t id) {
  if (out->count < out->room) out->ids[out->count] = id;
  out->count++;
}

/* Ends the word: repeatedly takes the longest piece that the vocabulary has; [UNK] if this does not reach the end of
 * the word. */
static void end_word(output_t* out) {
  word_t* word = &out->word;
  size_t begin = 0, end, first = out->count;
  int known = word->letters <= MAX_WORD;
  while (known && begin < word->length) {
    int64_t id = -1;
    for (end = word->length; end > begin; end--)
      if ((id = id_of(out->vocab, word->bytes + begin, end - begin, begin > 0)) >= 0) break;
    known = id >= 0;
    if (known) put_id(out, id);
    begin = end;
  }
  if (!known) {
    out->count = first;
    put_id(out, out->vocab->unk);
  }
  word->length = word->letters = 0;
}

size_t wordpiece_encode(const wordpiece_t* vocab, const char* text, int64_t* ids, size_t capacity) {
  output_t out;
  if (capacity < 2) return 0;
  out.vocab = vocab, out.ids = ids + 1, out.count = 0, out.room = capacity - 2;
  out.word.length = out.word.letters = 0;
  while (*text && out.count < out.room) {
    codepoint_t c = next_codepoint(&text);
    int kind = kind_of(c);
    if (kind == DROP) continue;
    if (kind != LETTER) end_word(&out);
    if (kind != SPACE) put_folded(&out.word, c);
    if (kind != LETTER) end_word(&out);
  }
  end_word(&out);
  if (out.count > out.room) out.count = out.room;
  ids[0] = vocab->cls;
  ids[out.count + 1] = vocab->sep;
  return out.count + 2;
}
