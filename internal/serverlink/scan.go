package serverlink

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// depthMax bounds the nesting of a message. The deepest that an SDK sends, a player's attributes, has six levels.
const depthMax = 64

// scanner walks over JSON text. It is strict about syntax; being lenient about names and types is its caller's part.
type scanner struct {
	text []byte
	at   int
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// next skips white space and takes c, if it is there.
func (s *scanner) next(c byte) bool {
	s.space()
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// members calls visit for each member of the object that comes next, with its name and the text of its value.
func (s *scanner) members(depth int, visit func(name, value []byte)) bool {
	if !s.next('{') {
		return false
	}
	if s.next('}') {
		return true
	}
	for {
		s.space()
		name, ok := s.quoted()
		if !ok || !s.next(':') {
			return false
		}
		value, ok := s.value(depth + 1)
		if !ok {
			return false
		}
		if visit != nil {
			visit(name, value)
		}
		if s.next('}') {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
}

// elements calls visit with the text of each value of the list that comes next.
func (s *scanner) elements(depth int, visit func(value []byte)) bool {
	if !s.next('[') {
		return false
	}
	if s.next(']') {
		return true
	}
	for {
		value, ok := s.value(depth + 1)
		if !ok {
			return false
		}
		if visit != nil {
			visit(value)
		}
		if s.next(']') {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
}

// value takes any value and returns its text.
func (s *scanner) value(depth int) ([]byte, bool) {
	s.space()
	if s.at == len(s.text) || depth > depthMax {
		return nil, false
	}
	start, ok := s.at, false
	switch c := s.text[s.at]; {
	case c == '"':
		_, ok = s.quoted()
	case c == '{':
		ok = s.members(depth, nil)
	case c == '[':
		ok = s.elements(depth, nil)
	case c == 't':
		ok = s.word("true")
	case c == 'f':
		ok = s.word("false")
	case c == 'n':
		ok = s.word("null")
	default:
		ok = s.number()
	}
	return s.text[start:s.at], ok
}

func (s *scanner) word(w string) bool {
	if len(s.text)-s.at < len(w) || string(s.text[s.at:s.at+len(w)]) != w {
		return false
	}
	s.at += len(w)
	return true
}

// quoted takes a string and returns what is between the quotes, still escaped.
func (s *scanner) quoted() ([]byte, bool) {
	if s.at == len(s.text) || s.text[s.at] != '"' {
		return nil, false
	}
	s.at++
	start := s.at
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return s.text[start : s.at-1], true
		case c == '\\':
			if !s.escape() {
				return nil, false
			}
		case c < ' ':
			return nil, false
		default:
			s.at++
		}
	}
	return nil, false
}

func (s *scanner) escape() bool {
	if s.at+1 == len(s.text) {
		return false
	}
	switch s.text[s.at+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.at += 2
		return true
	case 'u':
		if _, ok := hex4(s.text[s.at+2:]); ok {
			s.at += 6
			return true
		}
	}
	return false
}

func (s *scanner) number() bool {
	if s.at < len(s.text) && s.text[s.at] == '-' {
		s.at++
	}
	if s.at < len(s.text) && s.text[s.at] == '0' {
		s.at++
	} else if !s.digits() {
		return false
	}
	if s.at < len(s.text) && s.text[s.at] == '.' {
		s.at++
		if !s.digits() {
			return false
		}
	}
	if s.at < len(s.text) && s.text[s.at]|0x20 == 'e' {
		s.at++
		if s.at < len(s.text) && (s.text[s.at] == '+' || s.text[s.at] == '-') {
			s.at++
		}
		return s.digits()
	}
	return true
}

func (s *scanner) digits() bool {
	start := s.at
	for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at > start
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		d, ok := unhex(c)
		if !ok {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

// unquote resolves the escapes of a string that the scanner took. What is no valid text becomes U+FFFD, so that nothing
// inside has to care.
func unquote(raw []byte) string {
	plain := true
	for _, c := range raw {
		if c == '\\' || c >= utf8.RuneSelf {
			plain = false
			break
		}
	}
	if plain {
		return string(raw)
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			r, n := utf8.DecodeRune(raw[i:])
			out = utf8.AppendRune(out, r)
			i += n
			continue
		}
		c := raw[i+1]
		i += 2
		switch c {
		case 'u':
			r, _ := hex4(raw[i:])
			i += 4
			if utf16.IsSurrogate(r) {
				low, ok := rune(0), false
				if i+1 < len(raw) && raw[i] == '\\' && raw[i+1] == 'u' {
					low, ok = hex4(raw[i+2:])
				}
				if pair := utf16.DecodeRune(r, low); ok && pair != utf8.RuneError {
					r = pair
					i += 6
				} else {
					r = utf8.RuneError
				}
			}
			out = utf8.AppendRune(out, r)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		default: // quote, backslash, slash
			out = append(out, c)
		}
	}
	return string(out)
}

// wholeNumber reads an integer that may be written as 7, 7.0 or 7e0.
func wholeNumber(text []byte) (int, bool) {
	if n, err := strconv.Atoi(string(text)); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || f != float64(int32(f)) {
		return 0, false
	}
	return int(f), true
}
