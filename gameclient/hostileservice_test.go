package gameclient

import (
	"testing"
)

// A hostile service may send any bytes: the client closes the stream and opens another.
func TestHostileService(t *testing.T) {
	d := newDesk(t)
	p := d.login()
	s := d.stream()
	for name, sent := range map[string][]byte{
		"a length of 2^63":                   {0x81, 0x7F, 0x80, 0, 0, 0, 0, 0, 0, 0},
		"a length of 2^64-1":                 {0x82, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
		"a length of 2^63 behind a fragment": {0x01, 0x01, 'x', 0x80, 0x7F, 0x80, 0, 0, 0, 0, 0, 0, 0},
		"a length of 2^40":                   {0x81, 0x7F, 0, 0, 1, 0, 0, 0, 0, 0},
		"a ping of 2^63 bytes":               {0x89, 0x7F, 0x80, 0, 0, 0, 0, 0, 0, 0},
		"a close frame with half a code":     {0x88, 0x01, 0x03},
		"an unknown opcode":                  {0x83, 0x00},
		"a reserved bit":                     {0xC1, 0x00},
		"a masked frame":                     {0x81, 0x80, 0, 0, 0, 0},
		"no JSON":                            {0x81, 0x01, '{'},
	} {
		if _, err := s.NetConn().Write(sent); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		s = d.stream() // it has come back
	}
	s.event(3, OnPartyChanged, `{}`)
	if _, err := p.Await(t.Context(), OnPartyChanged); err != nil {
		t.Errorf("after all that: %v", err)
	}
}
