package webhook

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestPublicAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"93.184.216.34": true, "8.8.8.8": true, "2606:2800:220:1::1": true, "64:ff9b::8.8.8.8": true, "::ffff:8.8.8.8": true,
		"127.0.0.1": false, "127.8.0.1": false, "::1": false, "::ffff:127.0.0.1": false, "0.0.0.0": false, "0.1.2.3": false, "::": false,
		"10.0.0.1": false, "172.31.255.255": false, "192.168.1.1": false, "100.64.0.1": false, "100.100.100.200": false,
		"169.254.169.254": false, "::ffff:169.254.169.254": false, "fd00:ec2::254": false, "fe80::1": false, "fe80::1%eth0": false, "fec0::1": false,
		"192.0.0.192": false, "198.18.0.1": false, "203.0.113.1": false, "224.0.0.1": false, "255.255.255.255": false, "ff02::1": false,
		"64:ff9b::127.0.0.1": false, "64:ff9b::a9fe:a9fe": false, "64:ff9b:1::8.8.8.8": false, "::127.0.0.1": false, "::ffff:0:127.0.0.1": false,
		"2002:7f00:1::": false, "2001:0:7f00:1::": false, "2001:db8::1": false, "100::1": false, "4000::1": false,
	} {
		if got := public(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %t, want %t", address, got, want)
		}
	}
}

func TestTargets(t *testing.T) {
	const far, near, metadata = "8.8.8.8", "10.1.2.3", "169.254.169.254"
	for _, c := range []struct {
		list, host, address string
		want                bool
	}{
		{"", "example.com", far, true},
		{"", "example.com", near, false},
		{"", "example.com", metadata, false},
		{"hooks.example.com", "hooks.example.com", far, true},
		{"hooks.example.com", "HOOKS.example.com.", far, true},
		{"hooks.example.com", "example.com", far, false},
		{"hooks.example.com", "hooks.example.com", near, false}, // any client may control the addresses of a name
		{"*.example.com", "a.b.example.com", far, true},
		{"*.example.com", "example.com", far, false},
		{"*.example.com", "evilexample.com", far, false},
		{"10.1.0.0/16", "anything", near, true},
		{"10.1.0.0/16", "anything", "::ffff:10.1.2.3", true},
		{"10.1.0.0/16", "anything", far, false},
		{"::ffff:10.1.0.0/112", "anything", near, true},
		{"::ffff:10.1.0.0/112", "anything", "10.2.0.1", false},
		{"10.1.0.0/16", "anything", "10.2.0.1", false},
		{"* 10.1.2.3", "example.com", far, true},
		{"* 10.1.2.3", "example.com", near, true},
		{"* 10.1.2.3", "example.com", metadata, false},
	} {
		x, err := ParseTargets(c.list)
		if err != nil {
			t.Fatal(err)
		}
		if got := x.allows(c.host, netip.MustParseAddr(c.address)); got != c.want {
			t.Errorf("%q: %s at %s: %t, want %t", c.list, c.host, c.address, got, c.want)
		}
	}
	for _, wrong := range []string{"https://example.com", "a*.example.com", "*.*.com", "*.", "10.0.0.0/33", "example.com:443"} {
		if _, err := ParseTargets("fine.example.com " + wrong); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

func TestCallersURLs(t *testing.T) {
	dev := Targets{Loopback: true}
	private, _ := ParseTargets("*.example.com 127.0.0.0/8")
	for _, c := range []struct {
		targets Targets
		url     string
		want    bool
	}{
		{Targets{}, "https://hooks.example.com/x", true},
		{Targets{}, "https://name-that-resolves-to-nothing.invalid/", true}, // what it resolves to is not told
		{Targets{}, "http://hooks.example.com/x", false},
		{Targets{}, "https://localhost/", false},
		{Targets{}, "https://a.localhost./", false},
		{Targets{}, "http://127.0.0.1:9/", false},
		{Targets{}, "https://[::ffff:127.0.0.1]/", false},
		{Targets{}, "https://169.254.169.254/latest", false},
		{Targets{}, "https://10.0.0.1/", false},
		{dev, "http://127.0.0.1:9/", true},
		{dev, "http://localhost:9/", true},
		{dev, "https://10.0.0.1/", false},
		{private, "https://a.example.com/", true},
		{private, "http://127.0.0.1:9/", true},
		{private, "https://8.8.8.8/", false},
	} {
		if err := c.targets.CheckURL(c.url); (err == nil) != c.want {
			t.Errorf("%s: %v, want %t", c.url, err, c.want)
		}
	}
}

// The address is checked where the connection is made: a name says nothing about it.
func TestConnectionsAreChecked(t *testing.T) {
	var asked atomic.Int32
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer receiver.Close()
	t.Setenv("HTTP_PROXY", receiver.URL) // a proxy would go anywhere
	url := strings.Replace(receiver.URL, "127.0.0.1", "localhost", 1)
	for _, c := range []struct {
		targets Targets
		want    bool
	}{{Targets{}, false}, {Targets{Loopback: true}, true}} {
		asked.Store(0)
		client := NewTargetsClient(func() Targets { return c.targets }, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := Tell(ctx, client, time.Now(), &Message{URL: url, Keys: []string{"k"}})
		cancel()
		client.CloseIdleConnections()
		if c.want != (err == nil) || c.want != (asked.Load() > 0) || !c.want && !errors.Is(err, ErrNotAllowed) {
			t.Errorf("loopback %t: %v, asked %d times", c.want, err, asked.Load())
		}
	}
}
