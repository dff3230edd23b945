package playerapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/musterhq/muster/internal/frames/framestest"
	"github.com/musterhq/muster/internal/settings"
)

// listener is a client that records whether the numbers of events have a gap.
type listener struct {
	mu    sync.Mutex
	last  uint64
	wrong string
	over  chan struct{} // closed when the party has ended
}

func (l *listener) hear(message []byte) {
	var frame struct {
		Seq  uint64 `json:"seq"`
		Type string `json:"type"`
	}
	_ = json.Unmarshal(message, &frame)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case frame.Seq == 0 && frame.Type != "OnSync":
	case frame.Type != "OnSync" && frame.Seq != l.last+1:
		l.wrong = fmt.Sprintf("%s has number %d after %d", frame.Type, frame.Seq, l.last)
	default:
		l.last = frame.Seq
	}
	if frame.Type == "OnRemovedFromParty" {
		close(l.over)
	}
}

// The players of a full party join it and make changes at once while their streams attach: each gets all events in order.
func TestManyStreams(t *testing.T) {
	x := run(t, func(s *settings.Settings) { s.PlayerLogins = 0 })
	base := x.base + "player/"
	call := func(token, name string, body any) answer {
		text, _ := json.Marshal(body)
		return x.try(http.StatusOK, "player/"+name, token, string(text))
	}
	login := func(player string) string {
		token, _ := call("", "Session.Login", map[string]any{"provider": "dev", "token": `{"player_id":"` + player + `"}`})["access_token"].(string)
		return token
	}
	leader := login("leader")
	party := call(leader, "Party.CreateParty", map[string]any{"joinability": "OPEN"})["party"].(map[string]any)["party_id"]
	var players sync.WaitGroup
	var all []*listener
	for i := range 7 { // with the leader as many as a party holds
		l := &listener{over: make(chan struct{})}
		all = append(all, l)
		players.Go(func() {
			token := login(fmt.Sprint("player-", i))
			joined := make(chan struct{})
			go func() {
				defer close(joined)
				call(token, "Party.JoinPartyById", map[string]any{"party_id": party})
				for ready := range 4 {
					call(token, "Party.SetReady", map[string]any{"ready": ready%2 == 0})
				}
			}()
			for _, stays := range []bool{false, true} { // the second stream of one login takes the place of the first
				l.mu.Lock()
				after := l.last
				l.mu.Unlock()
				socket, _, err := websocket.DefaultDialer.Dial(fmt.Sprintf("ws://%sstream?after_seq=%d", base, after),
					http.Header{"Authorization": {"Bearer " + token}, "Sec-WebSocket-Protocol": {"playerflow.v1"}})
				if err != nil {
					t.Error(err)
					return
				}
				if stays {
					go framestest.Listen(socket, l.hear)
					continue
				}
				done := make(chan struct{})
				go func() { defer close(done); framestest.Listen(socket, l.hear) }()
				<-joined
				_ = socket.NetConn().Close() // it may not have heard anything yet
				<-done
			}
		})
	}
	players.Wait()
	call(leader, "Party.DisbandParty", map[string]any{})
	for i, l := range all {
		<-l.over
		l.mu.Lock()
		if l.wrong != "" {
			t.Errorf("player-%d: %s", i, l.wrong)
		}
		l.mu.Unlock()
	}
}
