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

// The file in which early releases kept access keys, before they were part of the cell's state, and its name after
// it was imported.
const (
	KeysFile         = "access-keys.json"
	ImportedKeysFile = KeysFile + ".imported"
)

const (
	secretFile = "cell.secret"
	secretSize = sha256.Size
)

// CellSecret is the one secret of a cell. The secrets of access keys, process tokens and others are derived from it, so no
// other secret has to be stored, and an answer with a derived secret can be repeated. An attacker who has it can forge all of
// them; losing it invalidates all of them.
//
// It has generations. One of them signs; earlier ones are accepted until their date of last use. Methods that derive values use the generation that signs; checks
// use Accepts, Accepted or At.
type CellSecret struct {
	key    [secretSize]byte
	number uint32       // of the generation; 0: the first
	ring   *Generations // nil: this is the only generation
}

// ProcessToken returns the token with which the server processes of a compute connect. It is derived, so every node issues
// the same token while it is valid, also after a restart; only the generation is stored. Like GameLift's tokens, it has
// the form of a UUID, and it matches [A-Za-z0-9-]{1,64}, which all server SDKs send unchanged.
// Source: docs/spec/server-sdk.md#query-parsing; see B003.
//
// registration is the random id of the compute's registration: without it, a compute that is registered again under its name
// would have the tokens of the previous registration. It is zero for computes that were registered by a version without it; their
// tokens stay the same.
func (s CellSecret) ProcessToken(fleet, compute string, registration [16]byte, generation uint32) string {
	text := []byte("process-token\x00")
	if registration != [16]byte{} {
		text = append([]byte("registered-process-token\x00"), registration[:]...)
	}
	text = binary.BigEndian.AppendUint32(text, generation)
	// Each part is preceded by its length, so that no two lists of parts produce the same text.
	for _, part := range []string{fleet, compute} {
		text = binary.BigEndian.AppendUint32(text, uint32(len(part)))
		text = append(text, part...)
	}
	id := uuid.UUID(s.derive(text)[:16])
	id[6] = id[6]&0x0f | 0x80 // version 8: content of our own
	id[8] = id[8]&0x3f | 0x80 // variant of RFC 9562
	return id.String()
}

// WebhookKeys returns the keys that sign notifications to a target: first that of the generation that signs, then those of earlier accepted ones, the latest first.
func (s CellSecret) WebhookKeys(target string) (all []string) {
	for _, g := range s.signers() {
		all = append(all, g.WebhookKey(target))
	}
	return all
}

// WebhookKey returns the key that signs notifications to a target. Each target has its own key, so that its receiver
// cannot forge notifications to others. Receivers get and use it as text.
func (s CellSecret) WebhookKey(target string) string {
	return hex.EncodeToString(s.derive([]byte("webhook-key\x00" + target)))
}

// SubscriptionToken returns the token with which the receiver at a URL confirms its subscription to a topic.
func (s CellSecret) SubscriptionToken(topic, url string) string {
	text := binary.BigEndian.AppendUint32([]byte("subscription-token\x00"), uint32(len(topic)))
	return hex.EncodeToString(s.derive(append(append(text, topic...), url...)))
}

// ConfirmsSubscription reports whether a token is the SubscriptionToken of a receiver.
func (s CellSecret) ConfirmsSubscription(topic, url, token string) bool {
	return s.Accepts("confirmation of a subscription", func(g CellSecret) bool { return Equal(token, g.SubscriptionToken(topic, url)) })
}

// Check returns a text that distinguishes cell secrets without revealing anything about them: secrets derived from one are
// worthless with another.
func (s CellSecret) Check() string {
	return hex.EncodeToString(s.derive([]byte("access-key-check"))[:8])
}

// CellCode returns the code of the cell, which shows in ids where they belong. It is no secret. Two cells have the same code with a probability of 1 in 65,536.
// It is the same for all generations of the secret, because ids contain it.
func (s CellSecret) CellCode() [2]byte { return s.generations().code }

// ConsoleSignature signs a statement of the console about who signed in.
func (s CellSecret) ConsoleSignature(text string) []byte {
	return s.derive([]byte("console\x00" + text))
}

// ConsoleLinkSignature signs the id of a sign-in link for the console. It has 26 characters.
func (s CellSecret) ConsoleLinkSignature(id string) string {
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(s.derive([]byte("console-link\x00" + id))[:16])
}

// SignInMAC authenticates the registrations, codes and tokens of sign-in clients. It has 32 bytes.
func (s CellSecret) SignInMAC(text []byte) []byte {
	return s.derive(append([]byte("sign-in-client\x00"), text...))
}

// LocalKey mutually authenticates the service and callers who can read the data directory.
func (s CellSecret) LocalKey() []byte { return s.derive([]byte("local-door")) }

// AccessKeySecret derives the secret of an access key from the generation that signs. It has AWS's length: 40 characters, which are 30 bytes in base64.
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

// Format keeps the secret out of the output of fmt.
func (s CellSecret) Format(f fmt.State, _ rune) { fmt.Fprint(f, "[cell secret]") }

// LogValue keeps the secret out of the log.
func (s CellSecret) LogValue() slog.Value { return slog.StringValue("[cell secret]") }

// Equal compares two secrets or tokens in constant time.
func Equal(a, b string) bool {
	return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}
