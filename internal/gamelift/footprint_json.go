package gamelift

import "reflect"

// scanResult is how a scan of a body ended.
type scanResult uint8

const (
	scanned   scanResult = iota // the body is well formed, as far as the scan looks
	malformed                   // the decoder says how
	overBound                   // it would take too much memory
	tooDeep
	badNumber // longer than numberBytesMax
	badTag    // CBOR: a tag that no member has
)

// jsonScan walks JSON text once. What it takes for well formed may still be refused by the decoder, never the other way
// round.
type jsonScan struct {
	footprint
	text  []byte
	at    int
	depth int
}

// document scans the whole text.
func (s *jsonScan) document(c *constraint) scanResult {
	if r := s.value(c); r != scanned {
		return r
	}
	if s.space(); s.at < len(s.text) {
		return malformed
	}
	return scanned
}

func (s *jsonScan) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// next skips spaces and gives the byte that follows, without taking it; 0 at the end.
func (s *jsonScan) next() byte {
	s.space()
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *jsonScan) value(c *constraint) scanResult {
	if !s.add(c.own()) {
		return overBound
	}
	switch b := s.next(); b {
	case '{':
		return s.object(c)
	case '[':
		return s.array(c)
	case '"':
		_, r := s.string(true)
		return r
	case 't', 'n':
		return s.skip(4)
	case 'f':
		return s.skip(5)
	default:
		return s.number()
	}
}

func (s *jsonScan) skip(n int) scanResult {
	if s.at += n; s.at > len(s.text) {
		return malformed
	}
	return scanned
}

func (s *jsonScan) number() scanResult {
	begin := s.at
	for s.at < len(s.text) {
		switch b := s.text[s.at]; {
		case '0' <= b && b <= '9', b == '-', b == '+', b == '.', b == 'e', b == 'E':
			s.at++
			continue
		}
		break
	}
	switch n := s.at - begin; {
	case n == 0:
		return malformed
	case n > numberBytesMax:
		return badNumber
	}
	return scanned
}

// string takes a string and gives what is between its quotes. With counted, its text is part of the footprint.
func (s *jsonScan) string(counted bool) ([]byte, scanResult) {
	s.at++
	begin, at, escapes := s.at, s.at, 0
	for ; at < len(s.text) && s.text[at] != '"'; at++ {
		if s.text[at] != '\\' {
			continue
		}
		at++
		escapes++
		if at < len(s.text) && s.text[at] == 'u' {
			escapes += 2 // six bytes for at most three
		}
	}
	if at >= len(s.text) {
		return nil, malformed
	}
	s.at = at + 1
	raw := s.text[begin:at]
	if counted && !s.add(int64(len(raw)-escapes)) {
		return nil, overBound
	}
	return raw, scanned
}

func (s *jsonScan) enter() bool {
	s.at++
	s.depth++
	return s.depth <= depthMax
}

// leave reports whether the object or list ends here, or goes on behind a comma.
func (s *jsonScan) leave(end byte) (over bool, r scanResult) {
	switch s.next() {
	case end:
		s.at++
		s.depth--
		return true, scanned
	case ',':
		s.at++
		return false, scanned
	}
	return false, malformed
}

func (s *jsonScan) array(c *constraint) scanResult {
	if !s.enter() {
		return tooDeep
	}
	if s.next() == ']' {
		s.at++
		s.depth--
		return scanned
	}
	if c != nil && c.kind != reflect.Slice {
		c = nil
	}
	for first := true; ; first = false {
		if !s.item(c, first) {
			return overBound
		}
		if r := s.value(c.inside(reflect.Slice)); r != scanned {
			return r
		}
		if over, r := s.leave(']'); over || r != scanned {
			return r
		}
	}
}

func (s *jsonScan) object(c *constraint) scanResult {
	if !s.enter() {
		return tooDeep
	}
	if s.next() == '}' {
		s.at++
		s.depth--
		return scanned
	}
	isMap := c != nil && c.kind == reflect.Map
	for first := true; ; first = false {
		if s.next() != '"' {
			return malformed
		}
		name, r := s.string(isMap)
		if r != scanned {
			return r
		}
		value := c.member(name)
		if isMap {
			value = c.elem
		}
		if (isMap || value == nil) && !s.item(mapOrNil(c, isMap), first) {
			return overBound
		}
		if s.next() != ':' {
			return malformed
		}
		s.at++
		if r := s.value(value); r != scanned {
			return r
		}
		if over, r := s.leave('}'); over || r != scanned {
			return r
		}
	}
}

func mapOrNil(c *constraint, isMap bool) *constraint {
	if isMap {
		return c
	}
	return nil
}
