/* Predicts with fastText's classifiers: several times as fast as fastText, with the same labels and probabilities.
 *
 * fastText decodes the rows of a compressed matrix anew for every n-gram, and visits most of the Huffman tree. Here
 * matrices are decoded once, the n-grams of known words are looked up once, n-grams without a row are passed over by a
 * bit, and the tree is searched from its more probable side. Sums have fastText's order and precision.
 *
 * A text is one line: words are separated by white space, NUL, halves of surrogate pairs, and a word `</s>`. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>

#include "_lid.h"

enum { NOTHING = -1, NOT_FINITE = -2, OUT_OF_MEMORY = -3 }; /* in place of a label */

static const char LABEL[] = "__label__";
static const float CLOSE = 0.01f; /* of logarithms */

typedef struct {
    Numbers rows, hashes;
    float *hidden, *scores; /* (dim), (labels + 1) */
    int32_t *nodes;         /* (labels + 1) */
} Scratch;

/* --- Rows of the input ----------------------------------------------------------------------------------------- */

static inline int append_ngram(const Model *model, Numbers *rows, uint32_t ngram)
{
    int32_t row = model->words + (int32_t)ngram;
    if (model->kept) {
        if (!(model->kept[ngram / 64] >> ngram % 64 & 1))
            return 1;
        row = model->ngram_rows[ngram];
    }
#ifdef __GNUC__
    __builtin_prefetch(model->input + (size_t)row * (size_t)model->dim);
#endif
    return append(rows, &row, 1);
}

int append_ngrams(const Model *model, Numbers *rows, const uint8_t *word, size_t length)
{
    const uint8_t *end = word + length;
    int32_t minn = model->minn, maxn = model->maxn;
    uint32_t bucket = (uint32_t)model->bucket;
    for (const uint8_t *from = word; from < end && maxn; from++) {
        if ((*from & 0xC0) == 0x80)
            continue; /* inside a character */
        const uint8_t *to = from;
        uint32_t hash = NO_BYTES;
        for (int32_t n = 1; to < end && n <= maxn; n++) {
            do
                hash = hash_byte(hash, *to++);
            while (to < end && (*to & 0xC0) == 0x80);
            int is_bracket = n == 1 && (from == word || to == end);
            if (n >= minn && !is_bracket && !append_ngram(model, rows, hash % bucket))
                return 0;
        }
    }
    return 1;
}

static inline int is_space(uint8_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r') || !byte; }

/* Find the rows of a text, between two bytes of white space. White space is overwritten. */
static int find_rows(const Model *model, Scratch *scratch, uint8_t *at, const uint8_t *end)
{
    Numbers *rows = &scratch->rows, *hashes = &scratch->hashes;
    uint32_t hash = NO_BYTES;
    rows->count = hashes->count = 0;
    for (;; at++, hash = NO_BYTES) {
        while (at < end && is_space(*at))
            at++;
        if (at >= end)
            break;
        uint8_t *word = at;
        while (at < end && !is_space(*at))
            hash = hash_byte(hash, *at++);
        size_t length = (size_t)(at - word);
        int32_t entry = find(model, word, length, hash)->entry;
        int is_label = entry < 0 && length >= sizeof LABEL - 1 && !memcmp(word, LABEL, sizeof LABEL - 1);
        if (entry >= model->words || is_label || (length == sizeof END - 1 && !memcmp(word, END, length)))
            continue;
        word[-1] = '<', word[length] = '>';
        const size_t *start = model->subword_starts + (entry < 0 ? 0 : entry);
        if (entry < 0 ? !append_ngrams(model, rows, word - 1, length + 2)
                      : !append(rows, model->subwords + start[0], start[1] - start[0]))
            return 0;
        if (model->word_ngrams > 1 && !append(hashes, (int32_t *)&hash, 1))
            return 0;
    }
    for (const char *byte = END; *byte; byte++)
        hash = hash_byte(hash, (uint8_t)*byte);
    if ((model->end >= 0 && !append(rows, &model->end, 1)) || !append(hashes, (int32_t *)&hash, 1))
        return 0;
    for (size_t first = 0; first < hashes->count; first++) { /* n-grams of words */
        uint64_t joined = (uint64_t)(int64_t)hashes->values[first];
        for (size_t next = first + 1; next < hashes->count && next - first < (size_t)model->word_ngrams; next++) {
            joined = joined * 116049371u + (uint64_t)(int64_t)hashes->values[next];
            if (!append_ngram(model, rows, (uint32_t)(joined % (uint64_t)model->bucket)))
                return 0;
        }
    }
    return 1;
}

/* --- Predictions ----------------------------------------------------------------------------------------------- */

static inline float sigmoid(float x) { return (float)(1. / (1.f + expf(-x))); }

static inline float fasttext_log(float x) { return (float)log(x + 1e-5); }

static inline float dot(const Model *model, const float *hidden, int32_t row)
{
    const float *weights = model->output + (size_t)row * (size_t)model->dim;
    float sum = 0;
    for (int32_t column = 0; column < model->dim; column++)
        sum += weights[column] * hidden[column];
    return sum;
}

/* The leaf of the highest probability. fastText searches from left to right and passes over what is not better so far;
 * here the more probable side comes first. Only where two leaves are close, fastText's order decides: it adds 1e-5 to
 * each probability on a path, so the end of a path may be better than its middle. */
static int32_t search(const Model *model, Scratch *scratch, int in_order, float *probability)
{
    float best = -INFINITY, second = -INFINITY;
    int32_t found = NOTHING, top = 1, inner = model->labels;
    scratch->nodes[0] = 2 * model->labels - 2, scratch->scores[0] = 0;
    while (top--) {
        int32_t node = scratch->nodes[top];
        float score = scratch->scores[top];
        if (score < fasttext_log(0) || score < (in_order ? best : best - CLOSE))
            continue;
        if (node < inner) {
            second = fmaxf(second, fminf(best, score));
            if (score >= best)
                found = node, best = score;
            continue;
        }
        float right = sigmoid(dot(model, scratch->hidden, node - inner));
        if (isnan(right))
            return NOT_FINITE;
        for (int turn = 0; turn < 2; turn++, top++) { /* the top one is next */
            int side = turn == (!in_order && right >= 0.5f);
            scratch->nodes[top] = model->children[node - inner][side];
            scratch->scores[top] = score + fasttext_log(side ? right : (float)(1. - right));
        }
    }
    if (!in_order && second >= best - CLOSE)
        return search(model, scratch, 1, probability);
    *probability = expf(best);
    return found;
}

/* Without a tree: the softmax, or a logistic function of each label, of which fastText has a table of 512 steps. */
static int32_t compare_all(const Model *model, Scratch *scratch, float *probability)
{
    float *scores = scratch->scores, highest = -INFINITY, sum = model->loss == SOFTMAX ? 0 : 1, best = -INFINITY;
    int32_t found = NOTHING;
    for (int32_t label = 0; label < model->labels; label++) {
        scores[label] = dot(model, scratch->hidden, label);
        if (isnan(scores[label]))
            return NOT_FINITE;
        highest = fmaxf(highest, scores[label]);
    }
    for (int32_t label = 0; label < model->labels; label++) {
        float x = scores[label];
        if (model->loss == SOFTMAX)
            sum += scores[label] = expf(x - highest);
        else
            scores[label] = x < -8 ? 0 : x > 8 ? 1 : sigmoid((float)((int)((x + 8) * 512 / 8 / 2) * 16) / 512 - 8);
    }
    for (int32_t label = 0; label < model->labels; label++) {
        float score = fasttext_log(scores[label] / sum);
        if (score >= best)
            found = label, best = score;
    }
    *probability = expf(best);
    return found;
}

static inline void add_rows(float *sums, const float *input, const Numbers *rows, size_t dim)
{
    for (size_t at = 0; at < rows->count; at++)
        for (size_t column = 0; column < dim; column++)
            sums[column] += input[(size_t)rows->values[at] * dim + column];
}

static int32_t predict_line(const Model *model, Scratch *scratch, uint8_t *text, const uint8_t *end, float *probability)
{
    float *hidden = scratch->hidden, sixteen[16] = {0};
    const Numbers *rows = &scratch->rows;
    *probability = 0;
    if (!find_rows(model, scratch, text, end))
        return OUT_OF_MEMORY;
    if (rows->count == (size_t)(model->end >= 0))
        return NOTHING;
    if (model->dim == 16) { /* as lid.176: the compiler keeps the sums in registers */
        add_rows(sixteen, model->input, rows, 16);
        memcpy(hidden, sixteen, sizeof sixteen);
    } else {
        memset(hidden, 0, (size_t)model->dim * sizeof *hidden);
        add_rows(hidden, model->input, rows, (size_t)model->dim);
    }
    for (int32_t column = 0; column < model->dim; column++)
        hidden[column] *= (float)(1. / (double)rows->count);
    return model->loss == HIERARCHICAL ? search(model, scratch, 0, probability) : compare_all(model, scratch, probability);
}

/* --- Python ---------------------------------------------------------------------------------------------------- */

typedef struct {
    PyObject head;
    Model model;
} Object;

static void free_all(void **parts, size_t count)
{
    while (count--)
        free(parts[count]);
}

static void deallocate(PyObject *self)
{
    Model *model = &((Object *)self)->model;
    PyTypeObject *type = Py_TYPE(self);
    void *parts[] = {model->input, model->output, model->names, model->starts, model->slots, model->kept,
                     model->ngram_rows, model->subwords, model->subword_starts, model->children};
    free_all(parts, sizeof parts / sizeof *parts);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyObject *make(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(keywords))
{
    const char *content;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(arguments, "y#:Model", &content, &size))
        return NULL;
    PyObject *self = ((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    const char *problem = self ? read_model(&((Object *)self)->model, (const uint8_t *)content, (size_t)size) : NULL;
    if (problem) {
        PyErr_SetString(problem == NO_MEMORY ? PyExc_MemoryError : PyExc_ValueError, problem);
        Py_CLEAR(self);
    }
    return self;
}

static PyObject *labels(PyObject *self, PyObject *Py_UNUSED(nothing))
{
    const Model *model = &((Object *)self)->model;
    PyObject *found = PyList_New(model->labels);
    for (int32_t label = 0; found && label < model->labels; label++) {
        const size_t *start = model->starts + model->words + label;
        const char *name = (const char *)model->names + start[0] + 1;
        PyObject *text = PyUnicode_DecodeUTF8(name, (Py_ssize_t)(start[1] - start[0] - 2), NULL);
        if (!text || PyList_SetItem(found, label, text))
            Py_CLEAR(found);
    }
    return found;
}

static PyObject *predict(PyObject *self, PyObject *arguments)
{
    const Model *model = &((Object *)self)->model;
    const char *content;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(arguments, "y#:predict", &content, &size))
        return NULL;
    size_t count = 1, room = (size_t)model->labels + 1;
    for (const char *at = content; (at = memchr(at, '\n', (size_t)(content + size - at))); at++)
        count++;
    uint8_t *text = malloc((size_t)size + 2);
    float *probabilities = malloc(count * sizeof *probabilities);
    int32_t *found = malloc(count * sizeof *found), worst = 0;
    Scratch scratch = {.hidden = malloc(((size_t)model->dim + 1) * sizeof(float)), .scores = malloc(room * sizeof(float)),
                       .nodes = malloc(room * sizeof(int32_t))};
    if (!model->labels || !text || !probabilities || !found || !scratch.hidden || !scratch.scores || !scratch.nodes)
        worst = OUT_OF_MEMORY;
    Py_BEGIN_ALLOW_THREADS
    if (!worst) {
        uint8_t *at = text + 1, *limit = at + size;
        memcpy(at, content, (size_t)size);
        text[0] = *limit = '\n';
        for (uint8_t *half = at; (half = memchr(half, 0xED, (size_t)(limit - half))); half++)
            if (limit - half > 2 && half[1] >= 0xA0 && half[2] >= 0x80)
                memset(half, ' ', 3); /* half of a surrogate pair */
        for (size_t line = 0; line < count && worst > NOT_FINITE; line++) {
            uint8_t *end = memchr(at, '\n', (size_t)(limit - at + 1));
            found[line] = predict_line(model, &scratch, at, end, probabilities + line);
            worst = found[line] < worst ? found[line] : worst;
            at = end + 1;
        }
    }
    Py_END_ALLOW_THREADS
    PyObject *result = NULL, *numbers = PyList_New((Py_ssize_t)count), *shares = PyList_New((Py_ssize_t)count);
    for (size_t line = 0; numbers && shares && line < count && worst > NOT_FINITE; line++) {
        PyList_SetItem(numbers, (Py_ssize_t)line, PyLong_FromLong(found[line]));
        PyList_SetItem(shares, (Py_ssize_t)line, PyFloat_FromDouble(fminf(probabilities[line], 1)));
    }
    if (worst == NOT_FINITE)
        PyErr_SetString(PyExc_ValueError, "its numbers are not finite");
    else if (worst == OUT_OF_MEMORY)
        PyErr_NoMemory();
    else if (!PyErr_Occurred())
        result = PyTuple_Pack(2, numbers, shares);
    Py_XDECREF(numbers);
    Py_XDECREF(shares);
    void *parts[] = {text, probabilities, found, scratch.hidden, scratch.scores, scratch.nodes, scratch.rows.values,
                     scratch.hashes.values};
    free_all(parts, sizeof parts / sizeof *parts);
    return result;
}

static PyMethodDef METHODS[] = {
    {"labels", labels, METH_NOARGS, "The labels in the order of their numbers; none if the model is not a classifier."},
    {"predict", predict, METH_VARARGS, "For each line the number of its best label (-1: nothing is known of it) and the "
                                       "probability of that. The lines are one text in UTF-8, joined by newlines."},
    {0}};
static PyType_Slot SLOTS[] = {
    {Py_tp_doc, "Model(content): a classifier of fastText, from the bytes of its file; ValueError if it is damaged."},
    {Py_tp_new, make}, {Py_tp_dealloc, deallocate}, {Py_tp_methods, METHODS}, {0}};
static PyType_Spec MODEL = {"mrs_suggest.common.text._lid.Model", sizeof(Object), 0, Py_TPFLAGS_DEFAULT, SLOTS};

static int execute(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&MODEL);
    int failed = !type || PyModule_AddObjectRef(module, "Model", type);
    Py_XDECREF(type);
    return failed ? -1 : 0;
}

static PyModuleDef_Slot MODULE_SLOTS[] = {{Py_mod_exec, execute}, {0}};
static PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, .m_name = "_lid", .m_slots = MODULE_SLOTS};

PyMODINIT_FUNC PyInit__lid(void) { return PyModuleDef_Init(&MODULE); }
