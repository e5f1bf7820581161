/* Reads comments of Reddit's dumps, one JSON object per line, into the buffers of Arrow's arrays; hashes their ids.
 *
 * Only plain lines are read: those of which nothing can be in doubt. Every byte of a plain line is checked, also where
 * nothing is read, but not everything that is valid is plain: no field comes twice, keys are ASCII without escapes, and
 * numbers are short. All other lines are left to msgspec, which decides what they are.
 *
 * No plain line has a line end inside, and the bytes that are read end with one: a loop over the bytes that may come
 * next stops there, without a comparison with the end. The line is not plain if NULL is returned. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined __GNUC__ && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define FIRST_BYTE(word) (__builtin_ctzll(word) / 8) /* the number of the first byte that is not zero */
#endif

typedef const uint8_t *Bytes;
enum { ID, PARENT, LINK, BODY, AUTHOR, TEXTS, SCORE = TEXTS, CREATED, META, DELETED, OTHER };
enum { LINE, IN_META, IN_OTHER }; /* whose keys they are */
enum { MAX_DEPTH = 32, LEAST_LINE = 32, WORD = 8, MAX_BLOCK = 1 << 30, MEMBERS = 64 };
static const char PREFIX[] = "t1_"; /* of the id of a comment */

/* Where the first members of the line before are, if it was read: most lines have the same keys in the same order, and
 * many of the same values. What is the same bytes is not checked again. */
typedef struct {
    struct {
        Bytes key, value;
        int field;
    } members[MEMBERS];
    int count;
} Model;

typedef struct {
    Bytes end;
    uint8_t *to[TEXTS]; /* where the next byte of each text goes */
    int64_t created, score;
    unsigned seen, given; /* bits: fields that have come, and those that are not null */
    Model *model;         /* of the line before; of this line below `member` */
    int member;           /* the number of the next */
} Line;

/* --- Strings --------------------------------------------------------------------------------------------------- */

/* The first byte of a string that is not ASCII, a control character, a quote or a backslash. The bytes before it are
 * copied to `to`, if that is not NULL, where up to WORD bytes more are overwritten. */
static inline Bytes pass_plain(Bytes at, Bytes end, uint8_t *to)
{
    const uint64_t ones = 0x0101010101010101u, highs = ones << 7;
    for (; end - at >= WORD; at += WORD) {
        uint64_t word, quote, escape, found;
        memcpy(&word, at, WORD);
        quote = word ^ ones * '"', escape = word ^ ones * '\\';
        /* A byte's high bit is set if it is found, or perhaps if one before it is. */
        found = (word | ((quote - ones) & ~quote) | ((escape - ones) & ~escape) | (word - ones * ' ')) & highs;
        if (to)
            memcpy(to, &word, WORD);
        if (found)
#ifdef FIRST_BYTE
            return at + FIRST_BYTE(found);
#else
            break;
#endif
        if (to)
            to += WORD;
    }
    for (; *at >= ' ' && *at < 0x80 && *at != '"' && *at != '\\'; at++)
        if (to)
            *to++ = *at;
    return at;
}

/* The bytes of a character in UTF-8 that is not ASCII; 0 if they are not valid. */
static inline int character_length(Bytes at)
{
    uint8_t lead = at[0], next = at[1];
    int length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (lead < 0xC2 || lead > 0xF4 || (lead == 0xE0 && next < 0xA0) || (lead == 0xED && next > 0x9F) ||
        (lead == 0xF0 && next < 0x90) || (lead == 0xF4 && next > 0x8F))
        return 0;
    for (int n = 1; n < length; n++)
        if ((at[n] & 0xC0) != 0x80)
            return 0;
    return length;
}

/* Four hexadecimal digits as a number; -1 if they are not. */
static inline int32_t hexadecimal(Bytes at)
{
    int32_t number = 0;
    int others = 0;
    for (int n = 0; n < 4; n++) {
        uint8_t digit = (uint8_t)(at[n] - '0'), letter = (uint8_t)((at[n] | 0x20) - 'a');
        others |= (digit > 9) & (letter > 5);
        number = number * 16 + (digit > 9 ? letter + 10 : digit);
    }
    return others ? -1 : number;
}

/* The end of an escape, from the byte after the backslash; half of a surrogate pair is not plain. */
static inline Bytes read_escape(Bytes at, Bytes end, int32_t *code)
{
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (*at != 'u') {
        const char *name = memchr(names, *at, sizeof names - 1);
        if (!name)
            return NULL;
        *code = meanings[name - names];
        return at + 1;
    }
    *code = end - at < 5 ? -1 : hexadecimal(at + 1);
    if (*code < 0 || (*code >= 0xDC00 && *code < 0xE000))
        return NULL;
    if (*code < 0xD800 || *code >= 0xDC00)
        return at + 5;
    int32_t low = end - at >= 11 && at[5] == '\\' && at[6] == 'u' ? hexadecimal(at + 7) : -1;
    if (low < 0xDC00 || low >= 0xE000)
        return NULL;
    *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
    return at + 11;
}

/* Write a character in UTF-8, and return where the next one goes. */
static inline uint8_t *write_character(int32_t code, uint8_t *to)
{
    static const uint8_t leads[] = {0, 0xC0, 0xE0, 0xF0};
    int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    *to++ = (uint8_t)(leads[more] | code >> 6 * more);
    while (more--)
        *to++ = (uint8_t)(0x80 | (code >> 6 * more & 0x3F));
    return to;
}

/* The end of a string, which begins at a quote; its text is copied to `to`, if that is not NULL. */
static inline Bytes read_text(Bytes at, Bytes end, uint8_t **text)
{
    uint8_t *to = text ? *text : NULL;
    if (*at != '"')
        return NULL;
    at++;
    for (;;) {
        Bytes first = at;
        at = pass_plain(first, end, to);
        if (to)
            to += at - first;
        if (*at == '"')
            break;
        while (*at == '\\') {
            int32_t code;
            at = read_escape(at + 1, end, &code);
            if (!at)
                return NULL;
            if (to)
                to = write_character(code, to);
        }
        while (*at >= 0x80) {
            int length = character_length(at);
            if (!length)
                return NULL;
            for (; length--; at++)
                if (to)
                    *to++ = *at;
        }
        if (*at < ' ')
            return NULL;
    }
    if (text)
        *text = to;
    return at + 1;
}

/* --- Other values ---------------------------------------------------------------------------------------------- */

static inline Bytes skip_space(Bytes at)
{
    while (*at == ' ' || *at == '\t' || *at == '\r')
        at++;
    return at;
}

static inline Bytes skip_word(Bytes at, const char *word)
{
    while (*word && *at == (uint8_t)*word)
        at++, word++;
    return *word ? NULL : at;
}

static inline int is_digit(uint8_t byte) { return byte >= '0' && byte <= '9'; }

/* The end of at least one and at most `most` digits. */
static inline Bytes skip_digits(Bytes at, int most)
{
    Bytes first = at;
    while (is_digit(*at))
        at++;
    return at == first || at - first > most ? NULL : at;
}

static Bytes skip_number(Bytes at)
{
    at += *at == '-';
    at = *at == '0' ? at + 1 : skip_digits(at, 18);
    if (at && *at == '.')
        at = skip_digits(at + 1, 18);
    if (at && (*at | 0x20) == 'e') {
        at++;
        at = skip_digits(at + (*at == '+' || *at == '-'), 2);
    }
    return at;
}

/* A whole number, perhaps with zeros after a point. */
static Bytes read_whole(Bytes at, int64_t *number)
{
    int negative = *at == '-';
    Bytes first = at += negative, end = *at == '0' ? at + 1 : skip_digits(at, 15);
    if (!end)
        return NULL;
    for (*number = 0; at < end; at++)
        *number = *number * 10 + (*at - '0');
    if (negative)
        *number = -*number;
    if (*at == '.') {
        for (first = ++at; *at == '0';)
            at++;
        if (at == first)
            return NULL;
    }
    return at;
}

/* The full name of a comment that is given by its number. */
static Bytes read_numbered(Bytes at, uint8_t **to)
{
    uint8_t digits[16];
    int count = 0;
    int64_t number;
    Bytes end = is_digit(*at) ? read_whole(at, &number) : NULL;
    if (!end || memchr(at, '.', (size_t)(end - at)))
        return NULL;
    do
        digits[count++] = (uint8_t)"0123456789abcdefghijklmnopqrstuvwxyz"[number % 36];
    while (number /= 36);
    memcpy(*to, PREFIX, sizeof PREFIX - 1);
    *to += sizeof PREFIX - 1;
    while (count--)
        *(*to)++ = digits[count];
    return end;
}

/* --- Lines ----------------------------------------------------------------------------------------------------- */

static int find_field(Bytes key, size_t length, int place)
{
    static const char *names[] = {"id", "parent_id", "link_id", "body", "author", "score", "created_utc", "_meta"};
    static const uint8_t of_length[] = {OTHER, OTHER, ID, OTHER, BODY, SCORE, AUTHOR, LINK, OTHER, PARENT, OTHER, CREATED};
    if (place == IN_META)
        return length == 17 && !memcmp(key, "was_deleted_later", length) ? DELETED : OTHER;
    if (place == IN_OTHER || length >= sizeof of_length)
        return OTHER;
    int field = length == 5 && *key == '_' ? META : of_length[length];
    return field != OTHER && !memcmp(key, names[field], length) ? field : OTHER;
}

static Bytes read_members(Line *line, Bytes at, int place, int depth);

static Bytes skip_value(Line *line, Bytes at, int depth)
{
    switch (*at) {
    case '"':
        return read_text(at, line->end, NULL);
    case 't':
        return skip_word(at, "true");
    case 'f':
        return skip_word(at, "false");
    case 'n':
        return skip_word(at, "null");
    case '{':
    case '[':
        return read_members(line, at, IN_OTHER, depth + 1);
    default:
        return skip_number(at);
    }
}

/* The end of the value of a field that is read. */
static inline Bytes read_field(Line *line, Bytes at, int field, int depth)
{
    unsigned bit = 1u << field;
    if (line->seen & bit)
        return NULL;
    line->seen |= bit;
    if (*at == 'n' && field != ID && field != LINK && field != BODY && field != CREATED)
        return skip_word(at, "null");
    if (field != DELETED)
        line->given |= bit;
    int64_t *number = field == SCORE ? &line->score : &line->created;
    switch (field) {
    case META:
        return *at == '{' ? read_members(line, at, IN_META, depth + 1) : NULL;
    case DELETED:
        if (*at == 't')
            line->given |= bit;
        return *at == 't' ? skip_word(at, "true") : skip_word(at, "false");
    case CREATED: /* in some years a string of digits */
        if (*at == '"') {
            at = read_whole(at + 1, number);
            return at && *at == '"' ? at + 1 : NULL;
        } /* fall through */
    case SCORE:
        at = read_whole(at, number);
        return field == SCORE && (line->score < INT32_MIN || line->score > INT32_MAX) ? NULL : at;
    case PARENT:
        if (*at != '"')
            return read_numbered(at, &line->to[PARENT]);
    }
    return read_text(at, line->end, &line->to[field]);
}

/* The value of the member that begins at `at`, and its field. */
static inline Bytes read_key(Line *line, Bytes at, int place, int *field)
{
    Bytes key = at + 1, close = *at == '"' ? pass_plain(key, line->end, NULL) : at;
    if (*close != '"')
        return NULL;
    *field = find_field(key, (size_t)(close - key), place);
    at = skip_space(close + 1);
    return *at == ':' ? skip_space(at + 1) : NULL;
}

/* How many of the first `most` bytes are surely the same. */
static inline Py_ssize_t same_bytes(Bytes one, Bytes other, Py_ssize_t most)
{
    Py_ssize_t count = 0;
    for (; most - count >= WORD; count += WORD) {
        uint64_t word, found;
        memcpy(&word, one + count, WORD);
        memcpy(&found, other + count, WORD);
        if (word != found)
#ifdef FIRST_BYTE
            return count + FIRST_BYTE(word ^ found);
#else
            break;
#endif
    }
    return count;
}

/* As `read_key`, for the next member of the line that differs from that of the line before, or whose field is read. */
static inline Bytes read_next_key(Line *line, Bytes at, int *field)
{
    Model *model = line->model;
    int n = line->member;
    Bytes value = NULL;
    if (n < model->count) {
        Bytes before = model->members[n].key;
        Py_ssize_t most = model->members[model->count - 1].value - before, rest = line->end - at, shift = at - before;
        Py_ssize_t same = same_bytes(at, before, most < rest ? most : rest);
        for (; n + 1 < model->count && model->members[n].field == OTHER && model->members[n + 1].key - before <= same; n++)
            model->members[n].key += shift, model->members[n].value += shift;
        at = model->members[n].key + shift;
        if (model->members[n].value - before <= same)
            value = model->members[n].value + shift, *field = model->members[n].field;
    }
    if (!value)
        value = read_key(line, at, LINE, field);
    if (n < MEMBERS)
        model->members[n].key = at, model->members[n].value = value, model->members[n].field = *field;
    line->member = n + 1;
    return value;
}

/* The end of an object or an array. */
static Bytes read_members(Line *line, Bytes at, int place, int depth)
{
    uint8_t last = *at == '{' ? '}' : ']';
    if (depth >= MAX_DEPTH)
        return NULL;
    at = skip_space(at + 1);
    if (*at == last)
        return at + 1;
    for (;;) {
        int field = OTHER;
        if (last == '}') {
            at = place == LINE ? read_next_key(line, at, &field) : read_key(line, at, place, &field);
            if (!at)
                return NULL;
        }
        at = field == OTHER ? skip_value(line, at, depth) : read_field(line, at, field, depth);
        if (!at)
            return NULL;
        at = skip_space(at);
        if (*at == last)
            return at + 1;
        if (*at != ',')
            return NULL;
        at = skip_space(at + 1);
    }
}

/* --- Columns --------------------------------------------------------------------------------------------------- */

typedef struct {
    uint8_t *values[TEXTS], *to[TEXTS]; /* all texts, and where the next one goes */
    uint8_t *scored, *deleted;          /* 0 or 1 */
    int32_t *lengths[TEXTS], *scores;
    int64_t *created;
    size_t rows, room;
    Model model;
} Columns;

/* Allocate room for the lines of `size` bytes. The caller frees the memory; NULL is returned if there is not enough. */
static void *make_room(Columns *columns, size_t size)
{
    size_t room = size / LEAST_LINE + 1;
    uint8_t *memory = malloc(room * (8 + 4 * (TEXTS + 1) + 2) + TEXTS * (size + WORD)), *at = memory;
    if (!memory)
        return NULL;
    columns->room = room;
    columns->created = (int64_t *)(void *)at, at += room * 8;
    columns->scores = (int32_t *)(void *)at, at += room * 4;
    for (int text = 0; text < TEXTS; text++, at += room * 4)
        columns->lengths[text] = (int32_t *)(void *)at;
    for (int text = 0; text < TEXTS; text++, at += size + WORD)
        columns->values[text] = columns->to[text] = at;
    columns->scored = at, columns->deleted = at + room;
    return memory;
}

/* Read a line as the next row. */
static Bytes read_line(Columns *columns, Bytes at, Bytes end)
{
    static const unsigned needed = 1u << ID | 1u << LINK | 1u << BODY | 1u << CREATED;
    size_t row = columns->rows;
    Line line = {.end = end, .model = &columns->model};
    if (row == columns->room)
        return NULL;
    memcpy(line.to, columns->to, sizeof line.to);
    at = *at == '{' ? read_members(&line, at, LINE, 0) : NULL;
    columns->model.count = !at ? 0 : line.member < MEMBERS ? line.member : MEMBERS;
    if (!at || *(at = skip_space(at)) != '\n' || (line.given & needed) != needed)
        return NULL;
    uint8_t *id = columns->to[ID];
    size_t prefix = sizeof PREFIX - 1, length = (size_t)(line.to[ID] - id);
    if (length >= prefix && !memcmp(id, PREFIX, prefix)) {
        memmove(id, id + prefix, length - prefix);
        line.to[ID] -= prefix;
    }
    if (!(line.given & 1u << PARENT)) { /* an answer to the post */
        length = (size_t)(line.to[LINK] - columns->to[LINK]);
        memcpy(line.to[PARENT], columns->to[LINK], length);
        line.to[PARENT] += length;
    }
    for (int text = 0; text < TEXTS; text++) {
        columns->lengths[text][row] = (int32_t)(line.to[text] - columns->to[text]);
        columns->to[text] = line.to[text];
    }
    columns->created[row] = line.created, columns->scores[row] = (int32_t)line.score;
    columns->scored[row] = line.given >> SCORE & 1, columns->deleted[row] = line.given >> DELETED & 1;
    columns->rows++;
    return at + 1;
}

/* --- Hashes ---------------------------------------------------------------------------------------------------- */

static const uint64_t P1 = 0x9E3779B185EBCA87u, P2 = 0xC2B2AE3D27D4EB4Fu, P3 = 0x165667B19E3779F9u,
                      P4 = 0x85EBCA77C2B2AE63u, P5 = 0x27D4EB2F165667C5u;

static inline uint64_t rotate(uint64_t word, int bits) { return word << bits | word >> (64 - bits); }

static inline uint64_t mixed(uint64_t sum, uint64_t word) { return rotate(sum + word * P2, 31) * P1; }

/* The bytes as a number, the first one last. */
static inline uint64_t read_word(Bytes at, int size)
{
    uint64_t word = 0;
    for (int n = 0; n < size; n++)
        word |= (uint64_t)at[n] << 8 * n;
    return word;
}

/* XXH64 with the seed 0. */
static uint64_t hash_text(Bytes at, size_t size)
{
    Bytes end = at + size;
    uint64_t hash = P5;
    if (size >= 32) {
        uint64_t sums[] = {P1 + P2, P2, 0, 0 - P1};
        for (; end - at >= 32; at += 32)
            for (int n = 0; n < 4; n++)
                sums[n] = mixed(sums[n], read_word(at + 8 * n, 8));
        hash = rotate(sums[0], 1) + rotate(sums[1], 7) + rotate(sums[2], 12) + rotate(sums[3], 18);
        for (int n = 0; n < 4; n++)
            hash = (hash ^ mixed(0, sums[n])) * P1 + P4;
    }
    hash += size;
    for (; end - at >= 8; at += 8)
        hash = rotate(hash ^ mixed(0, read_word(at, 8)), 27) * P1 + P4;
    if (end - at >= 4) {
        hash = rotate(hash ^ read_word(at, 4) * P1, 23) * P2 + P3;
        at += 4;
    }
    for (; at < end; at++)
        hash = rotate(hash ^ *at * P5, 11) * P1;
    hash = (hash ^ hash >> 33) * P2;
    hash = (hash ^ hash >> 29) * P3;
    return hash ^ hash >> 32;
}

/* --- Python ---------------------------------------------------------------------------------------------------- */

static PyObject *scan(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    const char *content;
    Py_ssize_t size, start;
    if (!PyArg_ParseTuple(arguments, "y#n:scan", &content, &size, &start))
        return NULL;
    if (size > MAX_BLOCK)
        return PyErr_Format(PyExc_ValueError, "block: expected at most 1 GiB, found %zd bytes", size);
    if (start < 0 || start > size)
        return PyErr_Format(PyExc_ValueError, "start: expected a position in the %zd bytes, found %zd", size, start);
    Bytes first = (Bytes)content + start, end = (Bytes)content + size, at = first, next;
    while (end > first && end[-1] != '\n')
        end--; /* a line without an end is not plain */
    Columns all = {.rows = 0};
    void *memory = make_room(&all, (size_t)(end - first));
    if (!memory)
        return PyErr_NoMemory();
    while (at < end && (next = read_line(&all, at, end)))
        at = next;
    size_t rows = all.rows;
    /* Pass over lines until one is plain. */
    while (!rows && at < end && !read_line(&all, at, end))
        at = (Bytes)memchr(at, '\n', (size_t)(end - at)) + 1;
    if (!rows && at == end)
        at = (Bytes)content + size;
    const void *parts[] = {all.values[ID], all.values[PARENT], all.values[LINK], all.values[BODY], all.values[AUTHOR],
                           all.lengths[ID], all.lengths[PARENT], all.lengths[LINK], all.lengths[BODY], all.lengths[AUTHOR],
                           all.scores, all.created, all.scored, all.deleted};
    enum { PARTS = sizeof parts / sizeof *parts };
    static const size_t widths[PARTS] = {0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 4, 8, 1, 1};
    PyObject *columns = PyTuple_New(rows ? PARTS : 0);
    for (int n = 0; columns && rows && n < PARTS; n++) {
        size_t length = n < TEXTS ? (size_t)(all.to[n] - all.values[n]) : rows * widths[n];
        PyObject *part = PyBytes_FromStringAndSize(parts[n], (Py_ssize_t)length);
        if (!part || PyTuple_SetItem(columns, n, part))
            Py_CLEAR(columns);
    }
    free(memory);
    return columns ? Py_BuildValue("nN", at - (Bytes)content, columns) : NULL;
}

static PyObject *hashes(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer texts, bounds;
    Py_ssize_t skipped, n = 0;
    if (!PyArg_ParseTuple(arguments, "y*y*n:hashes", &texts, &bounds, &skipped))
        return NULL;
    Py_ssize_t count = bounds.len < 16 ? 0 : bounds.len / 8 - 1;
    PyObject *found = PyBytes_FromStringAndSize(NULL, count * 8);
    char *to = found ? PyBytes_AsString(found) : NULL;
    for (; to && n < count; n++) {
        int64_t pair[2];
        memcpy(pair, (const char *)bounds.buf + 8 * n, sizeof pair);
        if (skipped < 0 || pair[0] < 0 || pair[0] > pair[1] || pair[1] > texts.len)
            break;
        int64_t start = skipped < pair[1] - pair[0] ? pair[0] + skipped : pair[1];
        uint64_t hash = hash_text((Bytes)texts.buf + start, (size_t)(pair[1] - start));
        memcpy(to + 8 * n, &hash, 8);
    }
    if (found && n < count) {
        Py_CLEAR(found);
        PyErr_Format(PyExc_ValueError, "text %zd: expected ascending bounds in %zd bytes", n, texts.len);
    }
    PyBuffer_Release(&texts);
    PyBuffer_Release(&bounds);
    return found;
}

static PyMethodDef METHODS[] = {
    {"scan", scan, METH_VARARGS,
     "scan(block, start): read the plain lines that begin at `start`; return where they end, and as bytes: all texts of "
     "id, parent_id, link_id, body and author (empty if there is none), then the lengths of those (int32), score (int32), "
     "created (int64), and whether there is a score and a mark of later deletion (0 or 1). If the line at `start` is not "
     "plain: where the next plain one begins, and ()."},
    {"hashes", hashes, METH_VARARGS,
     "hashes(texts, bounds, skipped): XXH64 (uint64, as bytes) of each text, without as many bytes at its beginning; the "
     "texts are between the neighbours of `bounds` (int64)."},
    {0}};
static PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, .m_name = "_lines", .m_methods = METHODS};

PyMODINIT_FUNC PyInit__lines(void) { return PyModuleDef_Init(&MODULE); }
