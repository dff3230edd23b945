package ruleset

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// nodeKind is a kind of JSON value.
type nodeKind uint8

const (
	jsonNull nodeKind = iota
	jsonBool
	jsonNumber
	jsonString
	jsonArray
	jsonObject
)

var jsonNames = [...]string{
	jsonNull: "null", jsonBool: "true or false", jsonNumber: "a number", jsonString: "a string", jsonArray: "a list", jsonObject: "an object",
}

// node is a JSON value with its position. encoding/json reports neither duplicate keys nor positions.
type node struct {
	kind    nodeKind
	at, end int     // byte offsets of its begin and its end
	text    string  // the value of a string; of other scalars the text as written
	items   []*node // of a list; of an object its values
	keys    []string
	members map[string]*node // of an object
}

// depthMax is the deepest nesting of values. The language needs 6.
const depthMax = 64

// syntaxError is the position at which a text is not valid JSON, with the reason.
type syntaxError struct {
	at   int
	text string
}

type jsonParser struct {
	body  string
	at    int
	depth int
}

// parseJSON reads a body that is one JSON value.
func parseJSON(body string) (n *node, err *syntaxError) {
	p := jsonParser{body: body}
	if n, err = p.value(); err != nil {
		return nil, err
	}
	p.blanks()
	if p.at < len(body) {
		return nil, p.unexpected("the end")
	}
	return n, nil
}

func (p *jsonParser) fail(at int, format string, args ...any) *syntaxError {
	return &syntaxError{at, fmt.Sprintf(format, args...)}
}

func (p *jsonParser) unexpected(want string) *syntaxError {
	if p.at >= len(p.body) {
		return p.fail(p.at, "the text ends, want %s", want)
	}
	r, _ := utf8.DecodeRuneInString(p.body[p.at:])
	if r == '/' {
		return p.fail(p.at, "got '/', want %s: JSON has no comments", want)
	}
	return p.fail(p.at, "got %q, want %s", r, want)
}

func (p *jsonParser) blanks() {
	for p.at < len(p.body) && strings.IndexByte(" \t\r\n", p.body[p.at]) >= 0 {
		p.at++
	}
}

// next skips blanks and returns the byte there; 0 at the end.
func (p *jsonParser) next() byte {
	p.blanks()
	if p.at < len(p.body) {
		return p.body[p.at]
	}
	return 0
}

func (p *jsonParser) value() (*node, *syntaxError) {
	n, err := p.anyValue()
	if err == nil {
		n.end = p.at
	}
	return n, err
}

func (p *jsonParser) anyValue() (*node, *syntaxError) {
	c := p.next()
	switch {
	case c == '{':
		return p.nested(p.object)
	case c == '[':
		return p.nested(p.array)
	case c == '"':
		at := p.at
		text, err := p.str()
		return &node{kind: jsonString, at: at, text: text}, err
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if strings.HasPrefix(p.body[p.at:], word) {
			n := &node{kind: jsonBool, at: p.at, text: word}
			if word == "null" {
				n.kind = jsonNull
			}
			p.at += len(word)
			return n, nil
		}
	}
	return nil, p.unexpected("a value")
}

func (p *jsonParser) nested(parse func() (*node, *syntaxError)) (*node, *syntaxError) {
	if p.depth == depthMax {
		return nil, p.fail(p.at, "lists and objects nest deeper than %d", depthMax)
	}
	p.depth++
	defer func() { p.depth-- }()
	return parse()
}

func (p *jsonParser) array() (*node, *syntaxError) {
	n := &node{kind: jsonArray, at: p.at}
	p.at++
	if p.next() == ']' {
		p.at++
		return n, nil
	}
	for {
		item, err := p.value()
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, item)
		switch p.next() {
		case ',':
			p.at++
		case ']':
			p.at++
			return n, nil
		default:
			return nil, p.unexpected("',' or ']'")
		}
	}
}

func (p *jsonParser) object() (*node, *syntaxError) {
	n := &node{kind: jsonObject, at: p.at, members: map[string]*node{}}
	p.at++
	if p.next() == '}' {
		p.at++
		return n, nil
	}
	for {
		if p.next() != '"' {
			return nil, p.unexpected("a key in double quotes")
		}
		at := p.at
		key, err := p.str()
		if err != nil {
			return nil, err
		}
		if n.members[key] != nil {
			return nil, p.fail(at, "the key %s occurs twice", quoted(key))
		}
		if p.next() != ':' {
			return nil, p.unexpected("':'")
		}
		p.at++
		value, err := p.value()
		if err != nil {
			return nil, err
		}
		n.members[key] = value
		n.keys, n.items = append(n.keys, key), append(n.items, value)
		switch p.next() {
		case ',':
			p.at++
		case '}':
			p.at++
			return n, nil
		default:
			return nil, p.unexpected("',' or '}'")
		}
	}
}

func (p *jsonParser) number() (*node, *syntaxError) {
	end := p.at + decimalLength(p.body[p.at:])
	if end == p.at {
		return nil, p.unexpected("a number")
	}
	n := &node{kind: jsonNumber, at: p.at, text: p.body[p.at:end]}
	p.at = end
	return n, nil
}

// decimalLength returns the length of the JSON number at the beginning of s.
func decimalLength(s string) int {
	digits := func(i int) int {
		for i < len(s) && '0' <= s[i] && s[i] <= '9' {
			i++
		}
		return i
	}
	start := 0
	if strings.HasPrefix(s, "-") {
		start = 1
	}
	i := digits(start)
	switch {
	case i == start:
		return 0
	case s[start] == '0':
		i = start + 1
	}
	if i < len(s) && s[i] == '.' {
		if j := digits(i + 1); j > i+1 {
			i = j
		}
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		if k := digits(j); k > j {
			i = k
		}
	}
	return i
}

// str reads a string; the parser is at its opening quote.
func (p *jsonParser) str() (string, *syntaxError) {
	start := p.at
	p.at++
	var b strings.Builder
	for p.at < len(p.body) {
		c := p.body[p.at]
		switch {
		case c == '"':
			p.at++
			return b.String(), nil
		case c < ' ':
			return "", p.fail(p.at, "got the control character %q in a string, want it escaped", rune(c))
		case c == '\\':
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
		default:
			end := p.at + 1
			for end < len(p.body) && p.body[end] != '"' && p.body[end] != '\\' && p.body[end] >= ' ' {
				end++
			}
			b.WriteString(p.body[p.at:end])
			p.at = end
		}
	}
	return "", p.fail(start, "the string has no end, want '\"'")
}

// escape reads what follows a backslash. An unpaired surrogate becomes U+FFFD, as in encoding/json.
func (p *jsonParser) escape() (rune, *syntaxError) {
	at := p.at
	p.at += 2
	if p.at > len(p.body) {
		return 0, p.fail(at, "the text ends in a string")
	}
	switch c := p.body[p.at-1]; c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		r, ok := p.hex()
		if !ok {
			return 0, p.fail(at, "want four hexadecimal digits after \\u")
		}
		if utf16.IsSurrogate(r) {
			back := p.at
			if strings.HasPrefix(p.body[p.at:], `\u`) {
				p.at += 2
				if low, ok := p.hex(); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
					return utf16.DecodeRune(r, low), nil
				}
			}
			p.at = back
			return utf8.RuneError, nil
		}
		return r, nil
	default:
		return 0, p.fail(at, "got the escape \\%c, want one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u", c)
	}
}

func (p *jsonParser) hex() (rune, bool) {
	if p.at+4 > len(p.body) {
		return 0, false
	}
	digits := p.body[p.at : p.at+4]
	n, err := strconv.ParseUint(digits, 16, 16) // takes no sign and, in base 16, no underscore
	if err != nil {
		return 0, false
	}
	p.at += 4
	return rune(n), true
}

// position describes the position of a byte in the body as line and character.
func position(body string, at int) string {
	before := body[:min(at, len(body))]
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("line %d, character %d", line, column)
}

// shownMax is the most characters of a value that a message repeats.
const shownMax = 60

// quoted formats a text for messages.
func quoted(s string) string { return strconv.Quote(cut(s)) }

// cut shortens a text that is too long for a message.
func cut(s string) string {
	n := 0
	for i := range s {
		if n == shownMax {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

// shown formats a value for messages.
func (n *node) shown() string {
	switch n.kind {
	case jsonString:
		return quoted(n.text)
	case jsonArray, jsonObject:
		return jsonNames[n.kind]
	default:
		return cut(n.text)
	}
}

// parseDecimal reads a finite number in JSON syntax, from a JSON number or a text.
func parseDecimal(s string) (float64, bool) {
	if s == "" || decimalLength(s) != len(s) {
		return 0, false
	}
	x, err := strconv.ParseFloat(s, 64)
	return x, err == nil
}
