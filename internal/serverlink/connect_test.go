package serverlink

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain/fleet"
)

// With another version of WebSocket a game server asks whether it may connect: its credentials are checked, with no other effect.
func TestQuestionWhetherAProcessMayCome(t *testing.T) {
	w := newWorld(t)
	ask := func(token string) (status int, version string) {
		query := url.Values{"pID": {"p-1"}, "ComputeId": {testCompute}, "FleetId": {testFleet}, "Authorization": {token}, "sdkVersion": {"5.5.0"}, "sdkLanguage": {"Go"}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+w.addr+"/?"+query.Encode(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, header := range strings.Fields("Connection:Upgrade Upgrade:websocket Sec-WebSocket-Version:0 Sec-WebSocket-Key:AAAAAAAAAAAAAAAAAAAAAA==") {
			name, value, _ := strings.Cut(header, ":")
			r.Header.Set(name, value)
		}
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode, answer.Header.Get("Sec-WebSocket-Version")
	}
	if status, _ := ask("wrong"); status != http.StatusForbidden {
		t.Errorf("a wrong token: %d, want 403", status)
	}
	if status, version := ask(w.token()); status != http.StatusUpgradeRequired || version != "13" {
		t.Errorf("the right token: %d %q, want 426 and 13", status, version)
	}
	if p := w.process("p-1"); p.Key != (fleet.Key{}) {
		t.Errorf("the service knows a process that only asked: %+v", p)
	}
}
