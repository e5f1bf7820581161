/* Reads fastText's models. They may come from anywhere, so each length and index is checked before it is used.
 *
 * Functions return NULL, or what is wrong. Numbers have the byte order of the machine, as in fastText. */
#include "_lid.h"

enum { SUPERVISED = 3, CENTROIDS = 256 };

const char NO_MEMORY[] = "out of memory";
static const char SHORT[] = "it ends too early", SIZES[] = "its sizes do not match";
static const int64_t MOST_COUNT = 1000000000000000; /* fastText's infinity */

typedef struct {
    const uint8_t *at, *end;
} Reader;

#define REQUIRE(condition, problem) do { if (!(condition)) return problem; } while (0)

static const uint8_t *skip(Reader *reader, int64_t items, int64_t bytes)
{
    const uint8_t *start = reader->at;
    REQUIRE(items >= 0 && items <= (reader->end - reader->at) / bytes, NULL);
    reader->at += items * bytes;
    return start;
}

static int take(Reader *reader, void *target, int64_t bytes)
{
    const uint8_t *start = skip(reader, bytes, 1);
    return start && memcpy(target, start, (size_t)bytes);
}

/* A product quantizer. sizes: of a vector, the number of its parts, the width of a part, and that of the last. */
static const char *read_quantizer(Reader *reader, int32_t dim, int32_t sizes[4], const uint8_t **centroids)
{
    REQUIRE(take(reader, sizes, 16), SHORT);
    REQUIRE(sizes[0] == dim && sizes[1] > 0 && sizes[2] > 0 && sizes[3] > 0, SIZES);
    REQUIRE((int64_t)(sizes[1] - 1) * sizes[2] + sizes[3] == dim, SIZES);
    return (*centroids = skip(reader, dim, 4 * CENTROIDS)) ? NULL : SHORT;
}

static const char *read_matrix(Reader *reader, int quantised, int32_t dim, int64_t *rows, float **matrix)
{
    uint8_t has_norms = 0;
    int64_t columns;
    int32_t code_bytes, sizes[4], norm_sizes[4];
    const uint8_t *values, *centroids, *norm_codes = NULL, *norms = NULL;
    const char *problem = NULL;
    REQUIRE(!quantised || take(reader, &has_norms, 1), SHORT);
    REQUIRE(take(reader, rows, 8) && take(reader, &columns, 8), SHORT);
    REQUIRE(*rows >= 0 && *rows <= INT32_MAX && columns == dim, SIZES);
    REQUIRE((uint64_t)*rows * (uint64_t)dim < PTRDIFF_MAX / sizeof **matrix, SIZES);
    if (!quantised) {
        REQUIRE(values = skip(reader, *rows, 4 * (int64_t)dim), SHORT);
        REQUIRE(*matrix = malloc((size_t)(*rows * dim + 1) * sizeof **matrix), NO_MEMORY);
        memcpy(*matrix, values, (size_t)(*rows * dim) * sizeof **matrix);
        return NULL;
    }
    REQUIRE(take(reader, &code_bytes, 4) && (values = skip(reader, code_bytes, 1)), SHORT);
    REQUIRE(!(problem = read_quantizer(reader, dim, sizes, &centroids)), problem);
    REQUIRE(code_bytes == *rows * sizes[1], SIZES);
    REQUIRE(!has_norms || (norm_codes = skip(reader, *rows, 1)), SHORT);
    REQUIRE(!has_norms || !(problem = read_quantizer(reader, 1, norm_sizes, &norms)), problem);
    float *target = *matrix = malloc((size_t)(*rows * dim + 1) * sizeof **matrix);
    REQUIRE(target, NO_MEMORY);
    for (int64_t row = 0; row < *rows; row++) {
        float norm = 1;
        if (has_norms)
            memcpy(&norm, norms + 4 * norm_codes[row], sizeof norm);
        for (int32_t part = 0; part < sizes[1]; part++) {
            int64_t width = part == sizes[1] - 1 ? sizes[3] : sizes[2];
            int64_t first = (int64_t)part * CENTROIDS * sizes[2] + *values++ * width;
            memcpy(target, centroids + 4 * first, 4 * (size_t)width);
            while (width--)
                *target++ *= norm;
        }
    }
    return NULL;
}

/* The names of words and labels. counts: (labels), freed by the caller. pruned: kept n-grams; negative: all. */
static const char *read_dictionary(Reader *reader, Model *model, int64_t **counts, int64_t *pruned)
{
    int32_t size;
    int64_t tokens, count, total = 0;
    REQUIRE(take(reader, &size, 4) && take(reader, &model->words, 4) && take(reader, &model->labels, 4), SHORT);
    REQUIRE(take(reader, &tokens, 8) && take(reader, pruned, 8), SHORT);
    REQUIRE(model->words >= 0 && model->labels > 0 && (int64_t)model->words + model->labels == size, SIZES);
    REQUIRE(size <= (reader->end - reader->at) / 10, SHORT); /* a name takes 10 bytes and its letters */
    size_t slots = 16, used = 0;
    while (slots < 3 * (size_t)size)
        slots *= 2;
    model->mask = (uint32_t)(slots - 1);
    model->starts = calloc((size_t)size + 1, sizeof *model->starts);
    model->slots = malloc(slots * sizeof *model->slots);
    model->names = malloc((size_t)(reader->end - reader->at) + 2); /* an unfinished name is put between < and > */
    *counts = malloc((size_t)model->labels * sizeof **counts);
    REQUIRE(model->starts && model->slots && model->names && *counts, NO_MEMORY);
    memset(model->slots, -1, slots * sizeof *model->slots);
    for (int32_t entry = 0; entry < size; entry++) {
        uint8_t is_label, *name = model->names + used + 1;
        size_t length = 0;
        uint32_t hash = NO_BYTES;
        for (; reader->at < reader->end && *reader->at; length++)
            hash = hash_byte(hash, name[length] = *reader->at++);
        REQUIRE(skip(reader, 1, 1) && take(reader, &count, 8) && take(reader, &is_label, 1), SHORT);
        REQUIRE(is_label == (entry >= model->words), "its words and labels are mixed");
        name[-1] = '<', name[length] = '>';
        model->starts[entry + 1] = used += length + 2;
        *find(model, name, length, hash) = (Slot){hash, entry};
        if (!is_label && length == sizeof END - 1 && !memcmp(name, END, length))
            model->end = entry;
        if (is_label) {
            REQUIRE(count >= 0 && count < MOST_COUNT - total, "a label has an impossible count");
            total += (*counts)[entry - model->words] = count;
        }
    }
    uint8_t *names = realloc(model->names, used);
    model->names = names ? names : model->names;
    return NULL;
}

/* Which n-grams have a row of the input, and which. ngrams: these rows. */
static const char *read_kept(Reader *reader, Model *model, int64_t pruned, int64_t *ngrams)
{
    int32_t pair[2];
    REQUIRE(model->bucket > 0 && pruned <= (reader->end - reader->at) / 8, SIZES);
    model->kept = calloc((size_t)model->bucket / 64 + 1, sizeof *model->kept);
    model->ngram_rows = calloc((size_t)model->bucket, sizeof *model->ngram_rows);
    REQUIRE(model->kept && model->ngram_rows, NO_MEMORY);
    for (; pruned; pruned--) {
        REQUIRE(take(reader, pair, 8) && pair[0] >= 0 && pair[0] < model->bucket, SIZES);
        REQUIRE(pair[1] >= 0 && pair[1] < INT32_MAX - model->words, SIZES);
        model->kept[pair[0] / 64] |= (uint64_t)1 << pair[0] % 64;
        model->ngram_rows[pair[0]] = model->words + pair[1];
        *ngrams = pair[1] >= *ngrams ? pair[1] + 1 : *ngrams;
    }
    return NULL;
}

/* Build Huffman's tree as fastText does; counts fall from label to label. */
static const char *build_tree(Model *model, const int64_t *counts)
{
    int64_t *sums = malloc((size_t)model->labels * sizeof *sums); /* of the inner nodes */
    int32_t leaf = model->labels - 1, node = 0;
    model->children = malloc((size_t)model->labels * sizeof *model->children);
    for (int32_t next = 0; sums && model->children && next < model->labels - 1; next++) {
        sums[next] = 0;
        for (int side = 0; side < 2; side++) {
            int is_leaf = leaf >= 0 && (node == next || counts[leaf] < sums[node]);
            sums[next] += is_leaf ? counts[leaf] : sums[node];
            model->children[next][side] = is_leaf ? leaf-- : model->labels + node++;
        }
    }
    free(sums);
    return sums && model->children ? NULL : NO_MEMORY;
}

static const char *find_subwords(Model *model)
{
    Numbers rows = {0};
    int ok = (model->subword_starts = calloc((size_t)model->words + 1, sizeof *model->subword_starts)) != NULL;
    for (int32_t word = 0; ok && word < model->words; word++) {
        const size_t *start = model->starts + word;
        ok = append(&rows, &word, 1) &&
             (word == model->end || append_ngrams(model, &rows, model->names + start[0], start[1] - start[0]));
        model->subword_starts[word + 1] = rows.count;
    }
    model->subwords = rows.values;
    return ok ? NULL : NO_MEMORY;
}

static const char *read_parts(Reader *reader, Model *model, int64_t **counts)
{
    int32_t head[14]; /* magic, version, dim, ws, epoch, minCount, neg, wordNgrams, loss, model, bucket, minn, maxn, - */
    int64_t rows, outputs, pruned, ngrams = 0;
    uint8_t quantised, quantised_output;
    const char *problem;
    REQUIRE(take(reader, head, sizeof head) && skip(reader, 1, sizeof(double)), SHORT);
    REQUIRE(head[0] == 793712314 && head[1] <= 12, "it is of an unknown version");
    REQUIRE(head[9] > 0 && head[9] <= SUPERVISED, "its kind is unknown");
    if (head[9] < SUPERVISED)
        return NULL; /* vectors of words: no labels */
    model->dim = head[2], model->word_ngrams = head[7], model->loss = head[8], model->bucket = head[10];
    model->minn = head[11], model->maxn = head[1] == 11 ? 0 : head[12], model->end = -1;
    REQUIRE(model->dim > 0 && model->minn >= 0 && model->maxn >= 0 && model->maxn <= 100 && model->word_ngrams >= 0, SIZES);
    REQUIRE(model->loss >= HIERARCHICAL && model->loss <= ONE_VS_ALL, "its loss is unknown");
    REQUIRE(!(problem = read_dictionary(reader, model, counts, &pruned)), problem);
    if (pruned == 0)
        model->maxn = model->word_ngrams = 0;
    else if (pruned > 0)
        REQUIRE(!(problem = read_kept(reader, model, pruned, &ngrams)), problem);
    else if (model->maxn || model->word_ngrams > 1)
        REQUIRE((ngrams = model->bucket) > 0, SIZES);
    REQUIRE(take(reader, &quantised, 1), SHORT);
    REQUIRE(quantised || pruned < 0, "it was pruned, but not quantised");
    REQUIRE(!(problem = read_matrix(reader, quantised, model->dim, &rows, &model->input)), problem);
    REQUIRE(take(reader, &quantised_output, 1), SHORT);
    quantised_output = quantised_output && quantised;
    REQUIRE(!(problem = read_matrix(reader, quantised_output, model->dim, &outputs, &model->output)), problem);
    REQUIRE(model->words + ngrams <= rows && outputs == model->labels, SIZES);
    REQUIRE(!(problem = build_tree(model, *counts)), problem);
    return find_subwords(model);
}

const char *read_model(Model *model, const uint8_t *content, size_t size)
{
    Reader reader = {content, content + size};
    int64_t *counts = NULL;
    const char *problem = read_parts(&reader, model, &counts);
    free(counts);
    return problem;
}
