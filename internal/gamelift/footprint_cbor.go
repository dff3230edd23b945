package gamelift

import (
	"encoding/binary"
	"reflect"
)

// cborScan scans CBOR once; see jsonScan. It accepts maps, lists and strings of indefinite length, which the SDKs for
// Java and Rust send, and one tag: that of times. It refuses all other tags everywhere, because no member of the model
// has one, and a number of a million digits (tags 2 and 3) costs the decoder seconds.
type cborScan struct {
	footprint
	data  []byte
	at    int
	depth int
}

const (
	cborIndefinite = 31   // in place of a length
	cborBreak      = 0xff // ends what has no length
	cborSimple     = 7 << 5
)

// document scans the whole body.
func (s *cborScan) document(c *constraint) scanResult {
	if r := s.value(c); r != scanned {
		return r
	}
	if s.at < len(s.data) {
		return malformed
	}
	return scanned
}

// head reads a major type and its argument. For an indefinite length, ok and indefinite are true.
func (s *cborScan) head() (major byte, n uint64, indefinite, ok bool) {
	if s.at >= len(s.data) {
		return 0, 0, false, false
	}
	b := s.data[s.at]
	s.at++
	major, short := b&0xe0, b&0x1f
	if short < 24 {
		return major, uint64(short), false, true
	}
	if short == cborIndefinite {
		return major, 0, true, true
	}
	if short > 27 {
		return 0, 0, false, false
	}
	size := 1 << (short - 24)
	if len(s.data)-s.at < size {
		return 0, 0, false, false
	}
	var wide [8]byte
	copy(wide[8-size:], s.data[s.at:])
	s.at += size
	return major, binary.BigEndian.Uint64(wide[:]), false, true
}

func (s *cborScan) value(c *constraint) scanResult {
	if !s.add(c.own()) {
		return overBound
	}
	major, n, indefinite, ok := s.head()
	if !ok {
		return malformed
	}
	switch major {
	case cborBytes, cborText:
		_, r := s.string(major, n, indefinite, true)
		return r
	case cborArray:
		return s.items(c, reflect.Slice, n, indefinite)
	case cborMap:
		return s.items(c, reflect.Map, n, indefinite)
	case cborTag:
		return s.tagged(n, indefinite)
	}
	if indefinite { // a break without a beginning, or not a number
		return malformed
	}
	return scanned
}

// tagged reads the number of seconds after the tag of times.
func (s *cborScan) tagged(tag uint64, indefinite bool) scanResult {
	if indefinite {
		return malformed
	}
	if tag != cborEpochTag {
		return badTag
	}
	major, _, indefinite, ok := s.head()
	switch {
	case !ok || indefinite:
		return malformed
	case major == cborUnsigned || major == cborNegative || major == cborSimple:
		return scanned
	}
	return badTag
}

// string reads a string whose head was read, and returns it if it is in one piece. With counted, it counts towards the
// footprint.
func (s *cborScan) string(major byte, n uint64, indefinite, counted bool) ([]byte, scanResult) {
	if !indefinite {
		if n > uint64(len(s.data)-s.at) {
			return nil, malformed
		}
		piece := s.data[s.at : s.at+int(n)]
		s.at += int(n)
		if counted && !s.add(int64(n)) {
			return nil, overBound
		}
		return piece, scanned
	}
	for {
		if s.ends() {
			return nil, scanned
		}
		of, n, again, ok := s.head()
		if !ok || again || of != major {
			return nil, malformed
		}
		// The decoder collects the pieces in a buffer that grows by doubling.
		if _, r := s.string(major, n, false, false); r != scanned {
			return nil, r
		}
		if !s.add(2 * int64(n)) {
			return nil, overBound
		}
	}
}

// ends reads a break, if there is one.
func (s *cborScan) ends() bool {
	if s.at < len(s.data) && s.data[s.at] == cborBreak {
		s.at++
		return true
	}
	return false
}

// items reads the elements of a list or a map whose head was read.
func (s *cborScan) items(c *constraint, kind reflect.Kind, n uint64, indefinite bool) scanResult {
	if s.depth++; s.depth > depthMax {
		return tooDeep
	}
	if n > uint64(len(s.data)-s.at) {
		return malformed
	}
	if c != nil && c.kind != kind && (kind != reflect.Map || c.kind != reflect.Struct) {
		c = nil
	}
	for i := uint64(0); indefinite || i < n; i++ {
		if indefinite && s.ends() {
			break
		}
		elem := c.inside(kind)
		if kind == reflect.Map {
			name, r := s.key()
			if r != scanned {
				return r
			}
			if c != nil && c.kind == reflect.Struct {
				elem = c.member(name)
			}
		}
		if (elem == nil || c.kind == kind) && !s.item(c, i == 0) {
			return overBound
		}
		if r := s.value(elem); r != scanned {
			return r
		}
	}
	s.depth--
	return scanned
}

// key reads the key of a map. A key that is not a string in one piece is not a member's name.
func (s *cborScan) key() ([]byte, scanResult) {
	if s.at < len(s.data) && s.data[s.at]&0xe0 == cborText {
		major, n, indefinite, ok := s.head()
		if !ok {
			return nil, malformed
		}
		return s.string(major, n, indefinite, true)
	}
	return nil, s.value(nil)
}
