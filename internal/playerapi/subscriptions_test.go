package playerapi

import (
	"strings"
	"testing"
)

// What players are told is posted over TLS, or does not leave the machine, as with hooks.
func TestSubscriptionsGoOverTLS(t *testing.T) {
	x := newLobby(t, func(c *Config) { c.Dev = true })
	const subscribe = PartnerPrefix + "Events.Subscribe"
	for _, url := range []string{"https://backend.example/players?key=1", "http://127.0.0.1:1/players", "http://localhost:1"} {
		x.wants(200, "")(x.send(x.door.Partner(), "", subscribe, `{"url":"`+url+`"}`))
	}
	for _, url := range []string{"http://backend.example/players", "http://169.254.169.254/", "ftp://backend.example", "backend", "https://"} {
		o := x.wants(400, "INVALID_ARGUMENT")(x.send(x.door.Partner(), "", subscribe, `{"url":"`+url+`"}`))
		if m, _ := o["message"].(string); !strings.HasPrefix(m, `url: "`+url+`", want`) || !strings.Contains(m, "https") {
			t.Errorf("%s: %v", url, o)
		}
	}
	o := x.wants(400, "INVALID_ARGUMENT")(x.send(x.door.Partner(), "", subscribe, `{"url":"https://ann:secret@backend.example"}`))
	if m, _ := o["message"].(string); strings.Contains(m, "secret") {
		t.Errorf("the answer repeats the password: %v", m)
	}
}
