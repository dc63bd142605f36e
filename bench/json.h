/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* json.h - reads JSON: a tree whose strings are cut out of the text in place. For report.c and bench_seeds.c. */
#ifndef PCBATCH_BENCH_JSON_H
#define PCBATCH_BENCH_JSON_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
	enum json_kind kind;
	const char *key; /* in an object */
	char *text;      /* of a string */
	double number;
	struct json *first, *next; /* members */
};

struct json_reader {
	char *at;
	int wrong, depth;
};

static inline void json_space(struct json_reader *r)
{
	while (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')
		r->at++;
}

/* Past the opening quote; escapes but \" and \\ stay as they are. */
static inline char *json_string(struct json_reader *r)
{
	char *text = ++r->at, *to = text;

	while (*r->at != '"' && *r->at != '\0') {
		if (*r->at == '\\' && (r->at[1] == '"' || r->at[1] == '\\'))
			r->at++;
		*to++ = *r->at++;
	}
	if (*r->at == '\0')
		r->wrong = 1;
	else
		r->at++;
	*to = '\0';
	return text;
}

static inline struct json *json_value(struct json_reader *r);

static inline void json_members(struct json_reader *r, struct json *parent, char end)
{
	struct json **last = &parent->first;

	r->at++;
	json_space(r);
	while (!r->wrong && *r->at != end) {
		char *key = NULL;

		if (end == '}') {
			r->wrong = *r->at != '"';
			if (r->wrong)
				return;
			key = json_string(r);
			json_space(r);
			r->wrong = *r->at != ':';
			if (r->wrong)
				return;
			r->at++;
		}
		*last = json_value(r);
		if (*last == NULL)
			return;
		(*last)->key = key;
		last = &(*last)->next;
		json_space(r);
		if (*r->at == ',') {
			r->at++;
			json_space(r);
		} else {
			r->wrong = *r->at != end;
		}
	}
	r->at++;
}

static inline struct json *json_value(struct json_reader *r)
{
	static const char *const words[] = { "null", "false", "true" };
	struct json *v = calloc(1, sizeof(*v));
	char *end;
	int i;

	if (v == NULL || r->depth == 64) {
		r->wrong = 1;
		return v;
	}
	r->depth++;
	json_space(r);
	for (i = 0; i < 3; i++)
		if (strncmp(r->at, words[i], strlen(words[i])) == 0)
			break;
	if (i < 3) {
		v->kind = (enum json_kind)i;
		r->at += strlen(words[i]);
	} else if (*r->at == '"') {
		v->kind = JSON_STRING;
		v->text = json_string(r);
	} else if (*r->at == '[' || *r->at == '{') {
		v->kind = *r->at == '[' ? JSON_ARRAY : JSON_OBJECT;
		json_members(r, v, *r->at == '[' ? ']' : '}');
	} else {
		v->kind = JSON_NUMBER;
		v->number = strtod(r->at, &end);
		r->wrong |= end == r->at;
		r->at = end;
	}
	r->depth--;
	return v;
}

/* The whole of a file, ended by a 0; NULL: it can't be read. */
static inline char *json_slurp(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = NULL;
	size_t size = 0, got = 1;

	while (f != NULL && got > 0) {
		char *more = realloc(text, size + 65537);

		if (more == NULL)
			break;
		text = more;
		got = fread(text + size, 1, 65536, f);
		size += got;
		text[size] = '\0';
	}
	if (f != NULL)
		(void)fclose(f);
	return text;
}

/* NULL: no such file, or not JSON. What is read lives to the program's end. */
static inline struct json *json_read(const char *path)
{
	struct json_reader r = { json_slurp(path), 0, 0 };
	struct json *v = r.at == NULL ? NULL : json_value(&r);

	return r.wrong ? NULL : v;
}

/* A member; NULL: there is none. */
static inline struct json *json_get(const struct json *object, const char *key)
{
	struct json *v = object == NULL || object->kind != JSON_OBJECT ? NULL : object->first;

	while (v != NULL && strcmp(v->key, key) != 0)
		v = v->next;
	return v;
}

static inline double json_number(const struct json *object, const char *key, double otherwise)
{
	const struct json *v = json_get(object, key);

	return v == NULL || v->kind != JSON_NUMBER ? otherwise : v->number;
}

static inline const char *json_text(const struct json *object, const char *key, const char *otherwise)
{
	const struct json *v = json_get(object, key);

	return v == NULL || v->kind != JSON_STRING ? otherwise : v->text;
}

/* The first member of an array or object; NULL: none, or it is neither. */
static inline struct json *json_first(const struct json *v)
{
	return v == NULL ? NULL : v->first;
}

#endif /* PCBATCH_BENCH_JSON_H */
