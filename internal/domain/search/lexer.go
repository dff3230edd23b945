package search

import (
	"strings"
	"unicode/utf8"
)

// TextMax is the most characters of a filter or an order: the API's limit.
const TextMax = 1024

type tokenKind uint8

const (
	endToken tokenKind = iota
	wordToken
	numberToken
	stringToken
	comparatorToken
	openToken
	closeToken
	wrongToken // not a token of the language; want may say what was expected
)

type token struct {
	kind  tokenKind
	text  string // as written
	value string // of a string, without quotes and escapes
	at    int    // characters before it
	want  string
}

// lexer splits a text into tokens, one ahead of the parser.
type lexer struct {
	text string
	byte int
	char int // characters before byte
}

// newLexer refuses a text that is too long before it is scanned.
func newLexer(text string) (lexer, error) {
	long := len(text) > TextMax*utf8.UTFMax
	if !long && len(text) > TextMax {
		long = utf8.RuneCountInString(text) > TextMax
	}
	if long {
		at := 0
		for i := range text {
			if at == TextMax {
				return lexer{}, &SyntaxError{at, shown(text[i:min(len(text), i+4*tokenShown)]), "at most 1024 characters in all"}
			}
			at++
		}
	}
	return lexer{text: text}, nil
}

func (l *lexer) next() token {
	for l.byte < len(l.text) && strings.IndexByte(" \t\r\n", l.text[l.byte]) >= 0 {
		l.skip(1)
	}
	if l.byte == len(l.text) {
		return token{kind: endToken, at: l.char}
	}
	switch c := l.text[l.byte]; {
	case c == '(':
		return l.take(openToken, 1)
	case c == ')':
		return l.take(closeToken, 1)
	case c == '\'':
		return l.quoted()
	case c == '"':
		t := l.take(wrongToken, 1)
		t.want = "a string in single quotes, such as 'novice'"
		return t
	case strings.IndexByte("=<>", c) >= 0:
		if two := l.text[l.byte:min(l.byte+2, len(l.text))]; two == "<>" || two == "<=" || two == ">=" {
			return l.take(comparatorToken, 2)
		}
		return l.take(comparatorToken, 1)
	case c == '-' || digit(c):
		return l.number()
	case letter(c):
		n := 1
		for l.byte+n < len(l.text) && wordByte(l.text[l.byte+n]) {
			n++
		}
		return l.take(wordToken, n)
	}
	_, size := utf8.DecodeRuneInString(l.text[l.byte:])
	return l.take(wrongToken, size)
}

func letter(c byte) bool   { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' }
func digit(c byte) bool    { return '0' <= c && c <= '9' }
func wordByte(c byte) bool { return letter(c) || digit(c) || c == '-' || c == '.' }

func (l *lexer) take(kind tokenKind, bytes int) token {
	t := token{kind: kind, text: l.text[l.byte : l.byte+bytes], at: l.char}
	l.skip(bytes)
	return t
}

func (l *lexer) skip(bytes int) {
	l.char += utf8.RuneCountInString(l.text[l.byte : l.byte+bytes])
	l.byte += bytes
}

// number reads [-] digits [. digits]. What follows must not be part of a word: 10AND is neither.
func (l *lexer) number() token {
	rest := l.text[l.byte:]
	n := 0
	for n < len(rest) && wordByte(rest[n]) {
		n++
	}
	written := rest[:n]
	whole, fraction, point := strings.Cut(strings.TrimPrefix(written, "-"), ".")
	t := l.take(numberToken, n)
	if !digits(whole) || point && !digits(fraction) {
		t.kind, t.want = wrongToken, "a number, such as 16, -1 or 2.5"
	}
	return t
}

func digits(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

// quoted reads a string in single quotes, in which a backslash stands before a quote or a backslash.
func (l *lexer) quoted() token {
	value := []byte(nil)
	for n := l.byte + 1; n < len(l.text); n++ {
		switch c := l.text[n]; c {
		case '\'':
			t := l.take(stringToken, n+1-l.byte)
			t.value = string(value)
			return t
		case '\\':
			if n++; n < len(l.text) {
				value = append(value, l.text[n])
			}
		default:
			value = append(value, c)
		}
	}
	t := l.take(wrongToken, len(l.text)-l.byte)
	t.want = `a single quote at the end of the string (inside it a quote is written \')`
	return t
}
