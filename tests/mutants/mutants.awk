# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Reads lists of mutants (the format is in README.md) for run.sh:
#	awk -v mode=list -f mutants.awk FILE.mut...
#		a line for each mutant: kind, name, backend, program, test, settings, flags, files;
#		kind is kill, hang, static or same; "-" for what there is none of.
#	awk -v mode=apply -v name=NAME -v dir=DIR -f mutants.awk FILE.mut...
#		makes the mutant's changes in DIR/include.
# Exits 1 with the reason when a list is malformed or an old text is not found exactly once.

function die(text)
{
	print FILENAME ":" FNR ": " text | "cat 1>&2"
	close("cat 1>&2")
	failed = 1
	exit 1
}

# ---- text ----------------------------------------------------------------------------------------

# How long the white space at `at` is: a blank, or a line continued by a backslash; 0: it is none.
function blank(text, at,    c)
{
	c = substr(text, at, 1)
	if (c == "\\")
		return substr(text, at + 1, 1) == "\n" ? 2 : 0
	return c == " " || c == "\t" || c == "\n"
}

# Where the words stand in text from `from` on, in this order and with any white space between them; 0: nowhere.
# Sets found_end to the place behind the last one.
function find(text, word, words, from,    at, here, i, skip)
{
	for (;;) {
		at = index(substr(text, from), word[1])
		if (at == 0)
			return 0
		at += from - 1
		here = at + length(word[1])
		for (i = 2; i <= words && blank(text, here); i++) {
			while ((skip = blank(text, here)) > 0)
				here += skip
			if (substr(text, here, length(word[i])) != word[i])
				break
			here += length(word[i])
		}
		if (i > words) {
			found_end = here
			return at
		}
		from = at + 1
	}
}

function read_all(file,    line, text, more)
{
	text = ""
	while ((more = (getline line < file)) > 0)
		text = text line "\n"
	close(file)
	if (more < 0)
		die(mutant ": cannot read " file)
	return text
}

function change(file, old, new,    text, word, words, at, end)
{
	text = read_all(file)
	gsub(/\\\n/, "\n", old)
	words = split(old, word)
	if (words == 0)
		die(mutant ": no old text")
	at = find(text, word, words, 1)
	if (at == 0)
		die(mutant ": old text not found in " file)
	end = found_end
	if (find(text, word, words, at + 1) != 0)
		die(mutant ": old text found more than once in " file)
	sub(/\n$/, "", new)
	printf "%s%s%s", substr(text, 1, at - 1), new, substr(text, end) > file
	close(file)
}

# ---- lists ---------------------------------------------------------------------------------------

function finish()
{
	if (mutant == "")
		return
	if (hunks == 0)
		die(mutant ": changes nothing")
	if (kind == "")
		kind = "kill"
	if (kind != "same" && kind != "static" && by == "")
		die(mutant ": by: is missing")
	if (why == "")
		die(mutant ": why: is missing")
	if (mode == "list")
		print kind "\t" mutant "\t" (by == "" ? "-\t-\t-\t-" : by) "\t" (flags == "" ? "-" : flags) "\t" files "\t" why
}

# backend program test [NAME=VALUE...]
function parse_by(text,    word, words, i, settings)
{
	words = split(text, word)
	if (words < 3 || word[1] !~ /^(rseq|generic|both|none)$/)
		die(mutant ": by: backend program test [NAME=VALUE...]")
	settings = words == 3 ? "-" : ""
	for (i = 4; i <= words; i++)
		settings = settings (i > 4 ? " " : "") word[i]
	return word[1] "\t" word[2] "\t" word[3] "\t" settings
}

part == "" && (/^#/ || /^$/) { next }

part == "" && /^== / {
	finish()
	mutant = $2
	if (mutant !~ /^[a-z0-9_-]+$/ || mutant in seen)
		die(mutant ": not a name, or used before")
	seen[mutant] = 1
	kind = by = flags = files = why = file = ""
	hunks = 0
	next
}

mutant == "" { die("expected == NAME") }

part == "" && /^in: / {
	file = $2
	files = files (files == "" ? "" : " ") file
	next
}
part == "" && /^by: / { by = parse_by(substr($0, 5)); next }
part == "" && /^why: / { why = substr($0, 6); next }
part == "" && /^flags: / { flags = substr($0, 8); next }
part == "" && /^kind: (hang|static|same)$/ { kind = $2; next }

part == "" && /^<<<$/ {
	if (file == "")
		die(mutant ": in: is missing")
	part = "old"
	old = new = ""
	next
}
part == "old" && /^===$/ { part = "new"; next }
part == "new" && /^>>>$/ {
	part = ""
	hunks++
	if (mode == "apply" && mutant == name) {
		change(dir "/include/" file, old, new)
		applied++
	}
	next
}
part == "old" { old = old $0 "\n"; next }
part == "new" { new = new $0 "\n"; next }

{ die("not understood: " $0) }

END {
	if (failed)
		exit 1
	if (part != "")
		die(mutant ": unfinished")
	finish()
	if (mode == "apply" && applied == 0)
		die(name ": no such mutant")
}
