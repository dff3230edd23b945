package localdoor

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"sync"
	"time"
)

// A request and its answer prove that their sender can read the secret of the data directory, without sending it. The
// request's proof covers the run of the service, the method, the path, the time, a random nonce and the body; the answer's
// covers that nonce, the status and the body.
const (
	dateHeader  = "Muster-Date" // Unix milliseconds
	nonceHeader = "Muster-Nonce"
	proofHeader = "Muster-Proof"
)

const (
	// skewMax is how old a request may be. Both ends use the clock of one machine.
	skewMax = 30 * time.Second
	// noncesMax bounds the requests that are accepted within twice skewMax; only the holder of the secret can reach it.
	noncesMax = 4096
	nonceSize = 16
)

func proofOf(key []byte, kind string, body []byte, parts ...string) string {
	return proofOfSum(key, kind, sha256.Sum256(body), parts...)
}

func proofOfSum(key []byte, kind string, sum [sha256.Size]byte, parts ...string) string {
	mac := hmac.New(sha256.New, key)
	for _, part := range append([]string{kind}, parts...) {
		_ = binary.Write(mac, binary.BigEndian, uint32(len(part))) // a hash never fails
		mac.Write([]byte(part))
	}
	mac.Write(sum[:])
	return hex.EncodeToString(mac.Sum(nil))
}

func requestProof(key []byte, run, method, path, date, nonce string, body []byte) string {
	return proofOf(key, "request", body, run, method, path, date, nonce)
}

func answerProof(key []byte, nonce string, status int, body []byte) string {
	return proofOf(key, "answer", body, nonce, strconv.Itoa(status))
}

// streamProof is the answerProof of a body that is sent while it is made. It follows the body in a trailer.
func streamProof(key []byte, nonce string, sum [sha256.Size]byte) string {
	return proofOfSum(key, "stream", sum, nonce)
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// nonces remembers the nonces of the last minute, so that an intercepted request is not accepted twice.
type nonces struct {
	mu    sync.Mutex
	seen  map[string]bool
	order []seenNonce
}

type seenNonce struct {
	nonce string
	until time.Time
}

// take reports whether the nonce is new, and whether there was room to remember it.
func (n *nonces) take(nonce string, now time.Time) (fresh, room bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.order) > 0 && now.After(n.order[0].until) {
		delete(n.seen, n.order[0].nonce)
		n.order = n.order[1:]
	}
	switch {
	case n.seen[nonce]:
		return false, true
	case len(n.order) >= noncesMax:
		return true, false
	case n.seen == nil:
		n.seen = map[string]bool{}
	}
	n.seen[nonce] = true
	n.order = append(n.order, seenNonce{nonce, now.Add(2 * skewMax)})
	return true, true
}
