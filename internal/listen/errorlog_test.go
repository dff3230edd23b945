package listen

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/logtest"
)

// Each alert by which a client refuses the service's certificate is a warning. The texts are those of crypto/tls.
func TestAlertsAboutTheCertificate(t *testing.T) {
	for alert, warns := range map[string]bool{
		"bad certificate": true, "unknown certificate": true, "unknown certificate authority": true, "expired certificate": true,
		"handshake failure": false,
	} {
		var logged logtest.Log
		newErrorLog(slog.New(slog.NewTextHandler(&logged, nil)), nil).Printf("http: TLS handshake error from 192.0.2.1:5: remote error: tls: %s", alert)
		if got := strings.Contains(logged.String(), "level=WARN"); got != warns {
			t.Errorf("%s: a warning: %t, want %t\n%s", alert, got, warns, logged.String())
		}
	}
}
