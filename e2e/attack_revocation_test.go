package e2e

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/porttest"
)

// held is a connection that its client keeps open as long as possible: it reads, and never answers a close frame.
type held struct {
	what  string
	ended <-chan struct{} // closed when the service has ended it
}

// hold sends the header of a request, waits for the header of the answer, and reads until the service ends the answer or the connection.
func hold(t *testing.T, what, address, head string, status int) *held {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	_, err = fmt.Fprintf(conn, "%sHost: %s\r\n\r\n", head, address)
	must(t, err)
	reader := bufio.NewReader(conn)
	answer, err := http.ReadResponse(reader, nil)
	must(t, err)
	if answer.StatusCode != status {
		said, _ := io.ReadAll(answer.Body)
		t.Fatalf("%s: %s: %s", what, answer.Status, said)
	}
	rest := io.Reader(answer.Body) // it may end normally, and leave the connection for another request
	if status == http.StatusSwitchingProtocols {
		rest = reader
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, rest) // until the end, whichever it is
	}()
	return &held{what, ended}
}

// open reports whether the service has not ended the connection.
func (h *held) open() bool {
	select {
	case <-h.ended:
		return false
	default:
		return true
	}
}

// revocationBound is far below the minute between two heartbeats of these streams: checking the key with each heartbeat
// would be too late.
const revocationBound = 20 * time.Second

// The connections and streams of a key end with it, at every door, even if the client does not answer the close frame.
func TestAttackRevokedKeyKeepsItsStreams(t *testing.T) {
	t.Parallel()
	partner := porttest.Free(t)
	options := filepath.Join(t.TempDir(), "flow.json")
	must(t, os.WriteFile(options, []byte(`{"SessionServiceConfig":{"pingInterval":"1m","deadAfter":"30m"}}`), 0o600))
	p, _, _, _ := productionPlace(t, "--player-flow", "--player-flow-config", options, "--partner-listen", partner)
	x := &target{place: p}
	const webSocket = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"

	open := func(keyID, secret, name string) []*held {
		basic := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(keyID+":"+secret)) + "\r\n"
		subscription := x.call(t, partner, "partner/Events.Subscribe", basic, `{}`).text("subscription_id")
		link, err := p.link("signed-"+name, p.signs(keyID, secret, time.Now().UTC()))
		must(t, err)
		return []*held{
			hold(t, "partner's stream", partner, "GET /playerflow/v1/partner/events?subscription_id="+subscription+" HTTP/1.1\r\n"+
				"Sec-WebSocket-Protocol: playerflow.events.v1\r\n"+webSocket+basic, http.StatusSwitchingProtocols),
			hold(t, "event stream of scripts", p.address, "GET /session/v1/events HTTP/1.1\r\nX-Client-Id: "+name+"\r\n"+basic, http.StatusOK),
			{"game server's link", link.Closed()},
		}
	}
	leaked, leakedSecret := p.key("backend")
	other, otherSecret := p.key("backend")
	ours, others := open(leaked, leakedSecret, "leaked"), open(other, otherSecret, "other")
	for _, h := range append(ours, others...) {
		if !h.open() {
			t.Fatalf("%s ended before its key was revoked", h.what)
		}
	}
	p.revoke(leaked)
	bound := time.After(revocationBound)
	for _, h := range ours {
		select {
		case <-h.ended:
		case <-bound:
			t.Fatalf("the %s outlived its key", h.what)
		}
	}
	for _, h := range others {
		if !h.open() {
			t.Errorf("the %s of another key ended, too", h.what)
		}
	}
	if _, err := p.link("signed-leaked", p.signs(leaked, leakedSecret, time.Now().UTC())); err == nil {
		t.Error("the game server is back with the revoked key")
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url()+"/session/v1/events", nil)
	must(t, err)
	r.SetBasicAuth(leaked, leakedSecret)
	answer, err := http.DefaultClient.Do(r)
	must(t, err)
	answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("the revoked key at the event stream of scripts: %s", answer.Status)
	}
}
