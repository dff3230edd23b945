// Package sigv4 has what all signatures of AWS' version 4 have in common: credential, time, signing key, string to sign. What is
// signed differs between doors: clients of the API sign an HTTP request (gamelift), and game servers sign their three ids
// (serverlink).
package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"hash"
	"strings"
	"sync"
	"time"
)

const (
	Algorithm  = "AWS4-HMAC-SHA256"
	TimeForm   = "20060102T150405Z" // X-Amz-Date
	dayForm    = "20060102"
	terminator = "aws4_request"
)

// CredentialForm is what ParseCredential reads.
const CredentialForm = "<key id>/<yyyymmdd>/<region>/<service>/" + terminator

// How far a signature's time may be off the service's clock, in either direction.
const (
	// ClientSkew is for clients of the API. The cloud allows five minutes and says so in its error, and SDKs correct their clock by the
	// Date of that answer.
	ClientSkew = 5 * time.Minute

	// ServerSkew is for game servers, unless a setting says otherwise. Their SDKs never correct a clock, and sign once: attempts
	// to connect repeat that signature for 156 s. docs/decisions/0053-two-clock-skews.md.
	ServerSkew = 15 * time.Minute
)

// Credential says which access key a signature claims, and for what.
type Credential struct {
	KeyID   string
	Scope   string // all behind the key id
	Day     string // YYYYMMDD
	Region  string
	Service string
}

// ParseCredential reads the CredentialForm, from its end: a key id may have slashes, a scope may not. All strings of the Credential are
// parts of the text.
func ParseCredential(text string) (c Credential, ok bool) {
	rest, ok := strings.CutSuffix(text, "/"+terminator)
	for _, part := range []*string{&c.Service, &c.Region, &c.Day} {
		at := strings.LastIndexByte(rest, '/')
		if at < 0 {
			return c, false
		}
		rest, *part = rest[:at], rest[at+1:]
	}
	c.KeyID = rest
	c.Scope = text[min(len(text), len(rest)+1):]
	return c, ok && c.KeyID != "" && len(c.Day) == len(dayForm) && c.Region != "" && c.Service != ""
}

// NewCredential is that of a client which signs at a time.
func NewCredential(keyID, region, service string, at time.Time) Credential {
	day := at.Format(dayForm)
	return Credential{KeyID: keyID, Scope: day + "/" + region + "/" + service + "/" + terminator, Day: day, Region: region, Service: service}
}

func (c *Credential) String() string { return c.KeyID + "/" + c.Scope }

// ParseTime reads the TimeForm. It is a few times as fast as time.Parse.
func ParseTime(s string) (time.Time, bool) {
	if len(s) != len(TimeForm) || s[8] != 'T' || s[15] != 'Z' {
		return time.Time{}, false
	}
	year, ok1 := digits(s[0:4])
	month, ok2 := digits(s[4:6])
	day, ok3 := digits(s[6:8])
	hour, ok4 := digits(s[9:11])
	minute, ok5 := digits(s[11:13])
	second, ok6 := digits(s[13:15])
	if !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6) || month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 60 {
		return time.Time{}, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	return t, t.Day() == day || second == 60
}

func digits(s string) (n int, ok bool) {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// Key is an access key's signing key for one scope. Any number of goroutines may use it.
type Key struct {
	secret, scope string
	signers       sync.Pool // of *signer
}

type signer struct {
	mac  hash.Hash
	text []byte
	sum  [sha256.Size]byte
}

// NewKey derives a signing key, which takes four HMACs: as much as everything else about a signature.
func NewKey(secret string, c *Credential) *Key {
	key := []byte("AWS4" + secret)
	for _, part := range [...]string{c.Day, c.Region, c.Service, terminator} {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(part))
		key = h.Sum(nil)
	}
	return &Key{
		secret: secret, scope: strings.Clone(c.Scope), // or a short string would keep the whole header of its request alive
		signers: sync.Pool{New: func() any { return &signer{mac: hmac.New(sha256.New, key)} }},
	}
}

// Append appends the signature of what is signed, in hexadecimal digits.
func (k *Key) Append(dst []byte, date string, signed []byte) []byte {
	s := k.signers.Get().(*signer)
	s.sum = sha256.Sum256(signed)
	s.text = append(append(append(s.text[:0], Algorithm+"\n"...), date...), '\n')
	s.text = append(append(s.text, k.scope...), '\n')
	s.text = hex.AppendEncode(s.text, s.sum[:])
	s.mac.Reset()
	s.mac.Write(s.text)
	dst = hex.AppendEncode(dst, s.mac.Sum(s.sum[:0]))
	k.signers.Put(s)
	return dst
}

// Sum appends the HMAC of a text that has its own form, such as that of a chunk of a streamed body, in hexadecimal digits.
func (k *Key) Sum(dst, text []byte) []byte {
	s := k.signers.Get().(*signer)
	s.mac.Reset()
	s.mac.Write(text)
	dst = hex.AppendEncode(dst, s.mac.Sum(s.sum[:0]))
	k.signers.Put(s)
	return dst
}

// Matches compares a signature with the one that it should be, in constant time.
func (k *Key) Matches(date string, signed []byte, signature string) bool {
	var want [2 * sha256.Size]byte
	return subtle.ConstantTimeCompare(k.Append(want[:0], date, signed), []byte(signature)) == 1
}

// keysMax bounds the keys that Keys remember. An access key needs one for each day and region that it is used in.
const keysMax = 4096

// Keys check signatures and remember the signing keys. The zero Keys remember none yet.
type Keys struct {
	mu    sync.RWMutex
	known map[scopedKey]*Key
}

type scopedKey struct{ keyID, scope string }

// Match reports whether a signature was made with a secret. Only keys of right signatures are remembered: wrong ones could fill the
// memory with invented scopes.
func (k *Keys) Match(secret string, c *Credential, date string, signed []byte, signature string) bool {
	k.mu.RLock()
	key := k.known[scopedKey{c.KeyID, c.Scope}]
	k.mu.RUnlock()
	known := key != nil && key.secret == secret // an access key may be made anew under its old id
	if !known {
		key = NewKey(secret, c)
	}
	if !key.Matches(date, signed, signature) {
		return false
	}
	if known {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil || len(k.known) >= keysMax { // yesterday's, most of them; those in use come back by themselves
		k.known = make(map[scopedKey]*Key)
	}
	k.known[scopedKey{strings.Clone(c.KeyID), key.scope}] = key
	return true
}

// Len is how many signing keys are remembered.
func (k *Keys) Len() int {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return len(k.known)
}

// AppendEscaped appends a text percent-encoded by RFC 3986: all but unreserved characters and those of keep, with upper-case digits.
func AppendEscaped(dst []byte, text, keep string) []byte {
	const digits = "0123456789ABCDEF"
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_.~", c) >= 0, strings.IndexByte(keep, c) >= 0:
			dst = append(dst, c)
		default:
			dst = append(dst, '%', digits[c>>4], digits[c&15])
		}
	}
	return dst
}

// AppendIDs appends what a game server signs: its three ids as a query.
func AppendIDs(dst []byte, compute, fleet, process string) []byte {
	dst = AppendEscaped(append(dst, "ComputeId="...), compute, "")
	dst = AppendEscaped(append(dst, "&FleetId="...), fleet, "")
	return AppendEscaped(append(dst, "&pID="...), process, "")
}
