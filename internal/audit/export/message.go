package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/audit"
)

// MessageMax is the maximum length of a message, in bytes. RFC 5425 asks receivers to accept as many, and rsyslog accepts no more by default.
const MessageMax = 8192

const (
	auditFacility = 13 // "log audit" of RFC 5424
	notice        = 5
	warning       = 4
	sequenceMax   = 1<<31 - 1
)

// Line is the form in which receivers get an entry.
type Line struct {
	audit.Document
	Omitted int `json:"changesOmitted,omitempty"` // changes that are left out because the message would be too long
}

// line encodes an entry as JSON of up to `most` bytes, in ASCII, which all receivers read alike.
func line(d audit.Document, most int) []byte {
	x := Line{Document: d}
	for {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(&x); err != nil {
			panic("export: " + err.Error()) // texts and numbers always marshal
		}
		text := ascii(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
		if len(text) <= most || len(x.Changes) == 0 {
			return text
		}
		x.Changes = x.Changes[:len(x.Changes)-1]
		x.Omitted++
	}
}

// ascii escapes all characters of a JSON text that are not ASCII.
func ascii(text []byte) []byte {
	if !bytes.ContainsFunc(text, func(r rune) bool { return r >= 0x7f }) {
		return text
	}
	var b []byte
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r < 0x7f:
			b = append(b, byte(r))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
		text = text[size:]
	}
	return b
}

// Header is what messages have in common.
type Header struct{ Host, Version string }

// message is an entry in the form of RFC 5424. Its sequenceId is the number of the entry.
func (h Header) message(d audit.Document) []byte {
	severity := notice
	if strings.HasPrefix(d.Outcome, "refused") {
		severity = warning
	}
	b := fmt.Appendf(nil, "<%d>1 %s %s muster - audit ", auditFacility*8+severity, d.At.UTC().Format("2006-01-02T15:04:05.000Z"), printable(h.Host, 255))
	if d.No <= sequenceMax {
		b = append(b, `[meta sequenceId="`+strconv.FormatUint(d.No, 10)+`"]`...)
	}
	b = append(b, `[origin software="muster" swVersion="`+printable(h.Version, 32)+`"] `...)
	return append(b, line(d, MessageMax-len(b))...)
}

// printable keeps the characters that a name in the head of a message may have.
func printable(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f || strings.ContainsRune(`"]\`, r) {
			return -1
		}
		return r
	}, text)
	if text == "" {
		return "-"
	}
	return text[:min(len(text), most)]
}
