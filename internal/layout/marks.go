package layout

import "strings"

// commandMark stands before and after a command of several words in a sentence. Broken over two lines it would be another command when it is
// pasted: of "nginx -s reload" a shell runs nginx, which starts it. What is marked and has no blank is left as it is: SQL quotes names so.
const commandMark = "`"

// marked is the first marked command of a text: where its first mark begins, and where its last one ends; from is -1 where there is none.
func marked(text string) (from, end int) {
	for at := 0; ; {
		open := strings.Index(text[at:], commandMark)
		if open < 0 {
			return -1, -1
		}
		open += at
		length := strings.Index(text[open+1:], commandMark)
		if length < 0 {
			return -1, -1
		}
		at = open + length + 2
		if command := text[open+1 : at-1]; strings.Contains(strings.TrimSpace(command), " ") && strings.TrimSpace(command) == command {
			return open, at
		}
	}
}

// Marked are the commands that a text marks.
func Marked(text string) (list []string) {
	for {
		from, end := marked(text)
		if from < 0 {
			return list
		}
		list = append(list, text[from+1:end-1])
		text = text[end:]
	}
}

// Unmarked is a text without the marks of its commands.
func Unmarked(text string) string {
	var b strings.Builder
	for {
		from, end := marked(text)
		if from < 0 {
			return b.String() + text
		}
		b.WriteString(text[:from] + text[from+1:end-1])
		text = text[end:]
	}
}

// Words splits a text at blanks, a marked command being one word with what touches it; the marks stay.
func Words(text string) (list []string) {
	glued := false // the last word goes on
	add := func(part string) {
		words := strings.Fields(part)
		if glued && len(words) > 0 && !strings.HasPrefix(part, " ") {
			list[len(list)-1] += words[0]
			words = words[1:]
		}
		list = append(list, words...)
		glued = part != "" && len(list) > 0 && !strings.HasSuffix(part, " ")
	}
	for {
		from, end := marked(text)
		if from < 0 {
			add(text)
			return list
		}
		add(text[:from])
		if command := text[from:end]; glued {
			list[len(list)-1] += command
		} else {
			list = append(list, command)
		}
		glued, text = true, text[end:]
	}
}
