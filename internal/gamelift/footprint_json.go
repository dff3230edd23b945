package gamelift

import (
	"bytes"
	"io"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/musterhq/muster/internal/jsonbody"
)

// scanResult is the outcome of a scan of a body.
type scanResult uint8

const (
	scanned   scanResult = iota // the body is well formed, as far as the scan checks
	malformed                   // the decoder reports the error
	overBound                   // it would take too much memory
	tooDeep
	badNumber // longer than numberBytesMax
	badTag    // CBOR: a tag that no member has
)

// jsonScan scans JSON text once. The decoder may still refuse text that the scan accepts as well formed, but not vice
// versa.
type jsonScan struct {
	footprint
	*jsonbody.Reader
}

// document scans the whole text.
func (s *jsonScan) document(c *constraint) scanResult {
	if r := s.value(c); r != scanned {
		return r
	}
	if _, err := s.ReadToken(); err != io.EOF {
		return malformed
	}
	return scanned
}

func (s *jsonScan) value(c *constraint) scanResult {
	if !s.add(c.own()) {
		return overBound
	}
	kind := s.PeekKind()
	if kind == jsontext.KindBeginObject || kind == jsontext.KindBeginArray {
		if s.StackDepth() == depthMax {
			return tooDeep
		}
		return s.inside(kind, c)
	}
	text, err := s.ReadValue()
	switch {
	case err != nil:
		return malformed
	case kind == jsontext.KindString && !s.addText(text):
		return overBound
	case kind == jsontext.KindNumber && len(text) > numberBytesMax:
		return badNumber
	}
	return scanned
}

// addText counts the least memory of the decoded string.
func (s *jsonScan) addText(quoted []byte) bool {
	n := len(quoted) - 2
	for rest := quoted; ; {
		at := bytes.IndexByte(rest, '\\')
		if at < 0 {
			return s.add(int64(n))
		}
		if n--; rest[at+1] == 'u' {
			n -= 2 // six bytes for at most three
		}
		rest = rest[at+2:]
	}
}

// inside scans a whole object or list.
func (s *jsonScan) inside(kind jsontext.Kind, c *constraint) scanResult {
	_, _ = s.ReadToken() // PeekKind has seen it
	scan := s.element
	if kind == jsontext.KindBeginObject {
		scan = s.member
	}
	for first := true; ; first = false {
		switch s.PeekKind() {
		case jsontext.KindEndObject, jsontext.KindEndArray:
			if _, err := s.ReadToken(); err != nil {
				return malformed
			}
			return scanned
		}
		if r := scan(c, first); r != scanned {
			return r
		}
	}
}

func (s *jsonScan) element(c *constraint, first bool) scanResult {
	if c != nil && c.kind != reflect.Slice {
		c = nil
	}
	if !s.item(c, first) {
		return overBound
	}
	return s.value(c.inside(reflect.Slice))
}

func (s *jsonScan) member(c *constraint, first bool) scanResult {
	name, err := s.Name()
	if err != nil {
		return malformed
	}
	if c != nil && c.kind == reflect.Map {
		if !s.add(int64(len(name))) || !s.item(c, first) {
			return overBound
		}
		return s.value(c.elem)
	}
	value := c.member(name)
	if value == nil && !s.item(nil, first) {
		return overBound
	}
	return s.value(value)
}
