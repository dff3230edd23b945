package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"

	"github.com/google/uuid"
)

// The file of a data directory in which releases before the cell kept access keys in its state had them, and its name
// once it was imported.
const (
	KeysFile         = "access-keys.json"
	ImportedKeysFile = KeysFile + ".imported"
)

const (
	secretFile = "cell.secret"
	secretSize = sha256.Size
)

// CellSecret is the one secret of a cell. Secrets of access keys and process tokens are derived from it, so nothing
// else that is secret has to be stored, and an answer with a derived secret can be repeated. A person who has it can forge all of
// them; losing it makes all of them void.
//
// It has generations, of which one signs, and earlier ones are accepted until their date of last use. What derives from a CellSecret uses the one that signs; what checks
// something uses Accepts, Accepted or At.
type CellSecret struct {
	key    [secretSize]byte
	number uint32       // of the generation; 0: the first
	ring   *Generations // nil: this generation is the only one
}

// ProcessToken is the token that lets the server processes of a compute connect. It is derived, so the same one is
// issued again while it is valid, on every node and after every restart; only the generation is stored. It has
// the shape of a UUID as the real ones do, and keeps to [A-Za-z0-9-]{1,64}, which all server SDKs send unchanged.
// Source: docs/spec/server-sdk.md#query-parsing; see B003.
//
// registration is the random id of the compute's registration: without it, a compute registered again under its name
// would have the tokens of the previous registration. It is zero for computes registered by a version without it, whose tokens
// do not change.
func (s CellSecret) ProcessToken(fleet, compute string, registration [16]byte, generation uint32) string {
	text := []byte("process-token\x00")
	if registration != [16]byte{} {
		text = append([]byte("registered-process-token\x00"), registration[:]...)
	}
	text = binary.BigEndian.AppendUint32(text, generation)
	// Each part is preceded by its length, so that no two lists of parts make the same text.
	for _, part := range []string{fleet, compute} {
		text = binary.BigEndian.AppendUint32(text, uint32(len(part)))
		text = append(text, part...)
	}
	id := uuid.UUID(s.derive(text)[:16])
	id[6] = id[6]&0x0f | 0x80 // version 8: content of our own
	id[8] = id[8]&0x3f | 0x80 // variant of RFC 9562
	return id.String()
}

// WebhookKeys are the keys that sign notifications to a target: that of the generation that signs, and those of the ones before that are accepted, the latest first.
func (s CellSecret) WebhookKeys(target string) (all []string) {
	for _, g := range s.signers() {
		all = append(all, g.WebhookKey(target))
	}
	return all
}

// WebhookKey signs notifications to a target: each target has a key of its own, so that its receiver
// cannot forge notifications to others. Receivers get and use it as text.
func (s CellSecret) WebhookKey(target string) string {
	return hex.EncodeToString(s.derive([]byte("webhook-key\x00" + target)))
}

// SubscriptionToken is the token with which the receiver at a URL confirms its subscription to a topic.
func (s CellSecret) SubscriptionToken(topic, url string) string {
	text := binary.BigEndian.AppendUint32([]byte("subscription-token\x00"), uint32(len(topic)))
	return hex.EncodeToString(s.derive(append(append(text, topic...), url...)))
}

// ConfirmsSubscription reports whether a token is the SubscriptionToken of a receiver.
func (s CellSecret) ConfirmsSubscription(topic, url, token string) bool {
	return s.Accepts("confirmation of a subscription", func(g CellSecret) bool { return Equal(token, g.SubscriptionToken(topic, url)) })
}

// Check distinguishes two cell secrets without revealing anything about them: secrets derived from one are worthless
// with the other.
func (s CellSecret) Check() string {
	return hex.EncodeToString(s.derive([]byte("access-key-check"))[:8])
}

// CellCode is the code of the cell, by which ids show where they belong. It is no secret. Cells differ in it, except for one pair of cells in 65,536.
// It stays through all generations of the secret, because ids have it.
func (s CellSecret) CellCode() [2]byte { return s.generations().code }

// ConsoleSignature signs a statement of the console: who has signed in.
func (s CellSecret) ConsoleSignature(text string) []byte {
	return s.derive([]byte("console\x00" + text))
}

// ConsoleLinkSignature signs the id of a link that signs in to the console: 26 characters.
func (s CellSecret) ConsoleLinkSignature(id string) string {
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(s.derive([]byte("console-link\x00" + id))[:16])
}

// SignInMAC authenticates what sign-in clients hold: their registrations, codes and tokens. 32 bytes.
func (s CellSecret) SignInMAC(text []byte) []byte {
	return s.derive(append([]byte("sign-in-client\x00"), text...))
}

// LocalKey authenticates callers who can read the data directory to the service, and the service to them.
func (s CellSecret) LocalKey() []byte { return s.derive([]byte("local-door")) }

// AccessKeySecret is the secret of an access key that is derived from the generation that signs: 40 characters, 30 bytes in base64, the length of AWS's own.
func (s CellSecret) AccessKeySecret(id string) string {
	return base64.StdEncoding.EncodeToString(s.derive([]byte("access-key\x00" + id))[:30])
}

func (s CellSecret) derive(text []byte) []byte {
	if s.ring != nil {
		return hmacOf(s.ring.is.Load().signing.secret.key, text)
	}
	return hmacOf(s.key, text)
}

func hmacOf(key [secretSize]byte, text []byte) []byte {
	mac := hmac.New(sha256.New, key[:])
	mac.Write(text)
	return mac.Sum(nil)
}

// Format keeps the secret out of everything that fmt prints.
func (s CellSecret) Format(f fmt.State, _ rune) { fmt.Fprint(f, "[cell secret]") }

// LogValue keeps the secret out of the log.
func (s CellSecret) LogValue() slog.Value { return slog.StringValue("[cell secret]") }

// Equal compares two secrets or tokens in constant time.
func Equal(a, b string) bool {
	return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}
