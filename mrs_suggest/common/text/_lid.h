/* A classifier of fastText (Joulin et al. 2016, github.com/facebookresearch/fastText) in memory; see _lid.c. */
#ifndef MRS_LID_H
#define MRS_LID_H
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { HIERARCHICAL = 1, NEGATIVE_SAMPLING, SOFTMAX, ONE_VS_ALL }; /* losses, by fastText's numbers */

static const char END[] = "</s>"; /* the word at the end of each line */
extern const char NO_MEMORY[];

typedef struct {
    uint32_t hash;
    int32_t entry; /* -1: the slot is free */
} Slot;

typedef struct {
    int32_t dim, words, labels, bucket, minn, maxn, word_ngrams, loss;
    int32_t end;            /* the word END; -1: unknown */
    float *input, *output;  /* (rows, dim); (labels, dim), for a tree its inner nodes */
    uint8_t *names;         /* of words, then labels, each as <name> */
    size_t *starts;         /* (words + labels + 1) of the names */
    Slot *slots;            /* (mask + 1) open addressing by the hash of the name */
    uint32_t mask;
    uint64_t *kept;         /* (bucket) bits: the n-gram has a row. NULL: each has one, after those of words */
    int32_t *ngram_rows;    /* (bucket) rows of the kept n-grams */
    int32_t *subwords;      /* rows of each word: its own, then those of its n-grams */
    size_t *subword_starts; /* (words + 1) */
    int32_t (*children)[2]; /* (labels - 1) of inner nodes; a number below `labels` is a leaf */
} Model;

typedef struct {
    int32_t *values;
    size_t count, room;
} Numbers;

/* Read a model, a file's content. NULL, or what is wrong; the caller frees the model in either case. */
const char *read_model(Model *model, const uint8_t *content, size_t size);

/* Append the rows of the character n-grams of `word`, which starts with < and ends with >. 0: out of memory. */
int append_ngrams(const Model *model, Numbers *rows, const uint8_t *word, size_t length);

static inline int append(Numbers *numbers, const int32_t *values, size_t count)
{
    if (numbers->room - numbers->count < count) {
        size_t room = 2 * numbers->room + count + 256;
        int32_t *grown = realloc(numbers->values, room * sizeof *grown);
        if (!grown)
            return 0;
        numbers->values = grown, numbers->room = room;
    }
    memcpy(numbers->values + numbers->count, values, count * sizeof *values);
    numbers->count += count;
    return 1;
}

/* FNV-1a of signed bytes, as in fastText. */
static const uint32_t NO_BYTES = 2166136261u;
static inline uint32_t hash_byte(uint32_t hash, uint8_t byte) { return (hash ^ (uint32_t)(int8_t)byte) * 16777619u; }

/* The slot of a name, or a free one. */
static inline Slot *find(const Model *model, const uint8_t *name, size_t length, uint32_t hash)
{
    for (uint32_t at = hash & model->mask;; at = (at + 1) & model->mask) {
        Slot *slot = model->slots + at;
        if (slot->entry < 0)
            return slot;
        const size_t *start = model->starts + slot->entry;
        if (slot->hash == hash && start[1] - start[0] == length + 2 && !memcmp(model->names + *start + 1, name, length))
            return slot;
    }
}
#endif
