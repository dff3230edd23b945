package settings

import (
	"strings"
	"testing"
)

func TestShown(t *testing.T) {
	const topic = "arn:aws:sns:us-east-1:000000000000:placements"
	for _, c := range []struct{ name, value, want string }{
		{"listen", ":8080", ":8080"},
		{"public-url", "https://muster.example.com:8443/base", "https://muster.example.com:8443/base"},
		{"public-url", "https://ops:hidden@muster.example.com/?k=hidden", "https://…@muster.example.com/?…"},
		{"public-url", "https://ops:hid/den@muster.example.com", "https://…@muster.example.com"},
		{"player-oidc-keys", "https://id.example.com/keys?token=hidden", "https://id.example.com/keys?…"},
		{"notify-events", "", ""},
		{"notify-events", "https://example.com", "https://example.com"},
		{"notify-events", "https://u:hidden@hooks.example.com/services/hidden?x=hidden#hidden", "https://hooks.example.com/…"},
		{"notify-events", "hooks.example.com/services/hidden", "…"},
		{"notify-topics", topic + "=https://a.example/hidden " + topic + "2=https://b.example", topic + "=https://a.example/… " + topic + "2=https://b.example"},
		{"notify-topics", "https://a.example/hidden", "https://a.example/…"},
	} {
		if got := Shown(c.name, c.value); got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.name, c.value, got, c.want)
		}
	}
}

// An error about a setting does not repeat its secrets.
func TestErrorsHoldNoSecrets(t *testing.T) {
	s := Defaults()
	s.PublicURL = "https://ops:hidden@muster.example.com/%zz"
	s.NotifyEvents = "ftp://u:hidden@example.com/hidden"
	s.NotifyTopics = "arn:aws:sns:us-east-1:000000000000:a=https:/hidden arn:wrong=https://a.example/hidden https://a.example/hidden arn:aws:sns:us-east-1:000000000000:b=https://x.example/hidden#hidden"
	s.PlayerOIDCIssuer = "http://u:hidden@id.example.com/?hidden"
	s.PlayerFlow = true
	err := s.Check()
	if err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("%v", err)
	}
}
