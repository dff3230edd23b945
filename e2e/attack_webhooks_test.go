package e2e

import (
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/musterhq/muster/internal/porttest"
	"github.com/musterhq/muster/internal/waittest"
)

// A backend's key cannot use the service as a scanner: the service calls webhooks at public addresses only, and reveals nothing about
// listeners elsewhere.
func TestAttackWebhooksScan(t *testing.T) {
	t.Parallel()
	_, partner, _ := net.SplitHostPort(porttest.Free(t))
	s, _ := startProduction(t, "--player-flow", "--player-dev-logins", "--partner-listen", "127.0.0.1:"+partner)
	id, secret := s.key("backend")
	call := func(name, body string) (int, object) {
		status, o, err := post(t, http.DefaultClient, "http://127.0.0.1:"+partner+"/playerflow/v1/partner/"+name, body, "Authorization", "Bearer "+id+"."+secret)
		must(t, err)
		return status, o
	}
	for _, url := range []string{
		"http://127.0.0.1:" + partner, "https://localhost:1/", "https://127.0.0.1/", "https://[::1]/", "https://[::ffff:127.0.0.1]/", "https://169.254.169.254/latest/meta-data/",
		"https://10.0.0.1/", "https://192.168.1.1/", "https://172.16.0.1/", "https://100.64.0.1/", "https://[fd00:ec2::254]/", "https://[fe80::1]/", "https://0.0.0.0/",
		"https://[64:ff9b::7f00:1]/", "https://[2002:7f00:1::]/", "https://224.0.0.1/", "file:///etc/passwd", "gopher://example.com/",
	} {
		if status, o := call("Events.Subscribe", `{"url":"`+url+`"}`); status != http.StatusBadRequest {
			t.Errorf("%s: %d %v, want 400", url, status, o)
		}
	}
	// A name is accepted, and the address to which it resolves is checked for each connection.
	host, err := os.Hostname()
	must(t, err)
	if addresses, err := net.LookupHost(host); err != nil || len(addresses) == 0 {
		cannotRun(t, "the name of this machine does not resolve: %v", err)
	}
	open, err := net.Listen("tcp", ":0")
	must(t, err)
	defer open.Close()
	var reached atomic.Int32
	go func() {
		for {
			c, err := open.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			c.Close()
		}
	}()
	_, openPort, _ := net.SplitHostPort(open.Addr().String())
	_, closedPort, _ := net.SplitHostPort(porttest.Free(t))
	names := map[string]string{}
	for what, url := range map[string]string{
		"an open port": "https://" + host + ":" + openPort + "/", "a closed port": "https://" + host + ":" + closedPort + "/", "no such name": "https://nothing.invalid/",
	} {
		status, o := call("Events.Subscribe", `{"url":"`+url+`"}`)
		if status != http.StatusOK {
			t.Fatalf("%s: %d %v", what, status, o)
		}
		names[o.text("subscription_id")] = what
	}
	// Something to tell: a player logs in.
	status, o, err := post(t, http.DefaultClient, s.url()+"/playerflow/v1/player/Session.Login", `{"provider":"dev","token":"{\"player_id\":\"ann\"}"}`)
	if err != nil || status != http.StatusOK {
		t.Fatalf("%d %v %v", status, o, err)
	}
	if status, o, err := post(t, http.DefaultClient, s.url()+"/playerflow/v1/player/Party.CreateParty", `{}`, "Authorization", "Bearer "+o.text("access_token")); err != nil || status != 200 {
		t.Fatalf("%d %v %v", status, o, err)
	}
	waittest.Until(t, "all webhooks to have failed, with the same words", func() bool {
		_, o := call("Events.List", `{}`)
		said, failed := map[string]bool{}, 0
		for _, each := range o["subscriptions"].([]any) {
			x := object(each.(map[string]any))
			if text := x.text("last_error"); text != "" {
				said[text] = true
				failed++
				for _, word := range []string{"refused", "timeout", "no such host", "not allowed", "dial", openPort, closedPort} {
					if strings.Contains(text, word) {
						t.Errorf("%s: last_error says %q", names[x.text("subscription_id")], text)
					}
				}
			}
		}
		return failed == 3 && len(said) == 1
	})
	if n := reached.Load(); n != 0 {
		t.Errorf("the service connected %d times to a port of its own machine", n)
	}
	s.untilLogged("--webhook-allow")
}
