package playerapi_test

import (
	"net/http"
	"testing"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/playerapi/objects"
)

// In development partners need no credential, so the service refuses the requests of pages of other sites. That includes streams,
// which a browser opens with a GET and without a preflight.
func TestDevelopmentStreamsAreForNoPage(t *testing.T) {
	x := run(t, nil)
	for path, here := range map[string]int{
		objects.ServerStreamPath + "?game_instance_id=gi-00000000-0000-4000-8000-000000000001": http.StatusNotFound,
		objects.EventsPath + "?subscription_id=" + flow.SubscriptionID{15: 1}.String():         http.StatusNotFound,
	} {
		for origin, want := range map[string]int{"": here, "http://" + x.address: here, "https://evil.example": http.StatusForbidden} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+x.address+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range map[string]string{
				"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
				"Sec-WebSocket-Protocol": "playerflow.partner.v1, playerflow.events.v1", "Origin": origin,
			} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("%s from %q: %d, want %d", path, origin, answer.StatusCode, want)
			}
		}
	}
}
