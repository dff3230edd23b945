package serverlink

import (
	"net/url"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/musterhq/muster/internal/domain/fleet"
)

func TestParseHello(t *testing.T) {
	key := fleet.Key{Fleet: "fleet-1", Compute: "DesktopPC", Process: "p-1"}
	for _, tc := range []struct{ name, query, token string }{
		{"Go 5.2 and later, sorted, form encoding", "Authorization=tok%2Ben%2F%3D1&ComputeId=DesktopPC&FleetId=fleet-1&IdempotencyToken=7b0&pID=p-1&sdkLanguage=Go&sdkVersion=5.6.0", "tok+en/=1"},
		{"Go 5.0, raw", "pID=p-1&sdkVersion=5.0.0&sdkLanguage=Go&Authorization=tok+en/=1&ComputeId=DesktopPC&FleetId=fleet-1", "tok+en/=1"},
		{"C#, own order", "ComputeId=DesktopPC&FleetId=fleet-1&pID=p-1&sdkLanguage=CSharp&sdkVersion=5.4.0&IdempotencyToken=1&Authorization=a-b", "a-b"},
		{"unknown parameters, repeated ones, empty pairs", "&x=1&pID=p-1&pID=p-2&FleetId=fleet-1&ComputeId=DesktopPC&&Authorization=a&=&z", "a"},
		{"a percent sign that starts no escape", "pID=p-1&FleetId=fleet-1&ComputeId=DesktopPC&Authorization=5%&sdkVersion=%zz", "5%"},
		{"no authorization", "pID=p-1&FleetId=fleet-1&ComputeId=DesktopPC", ""},
	} {
		h, err := parseHello(tc.query)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if h.key != key || h.authorization != tc.token {
			t.Errorf("%s: got %v with token %q, want %v with %q", tc.name, h.key, h.authorization, key, tc.token)
		}
	}
	container := "host-1/0123456789abcdef"
	if h, err := parseHello("pID=p&FleetId=f&ComputeId=" + url.QueryEscape(container)); err != nil || h.key.Compute != container {
		t.Errorf("compute id with a slash: got %q, %v", h.key.Compute, err)
	}
	for name, query := range map[string]string{
		"no process":         "FleetId=fleet-1&ComputeId=c",
		"no fleet":           "pID=p&ComputeId=c",
		"no compute":         "pID=p&FleetId=fleet-1",
		"a fleet ARN":        "pID=p&ComputeId=c&FleetId=arn:aws:gamelift:us-east-1::fleet/fleet-1",
		"an endless process": "FleetId=fleet-1&ComputeId=c&pID=" + strings.Repeat("p", 5000),
	} {
		if h, err := parseHello(query); err == nil {
			t.Errorf("%s: accepted as %v", name, h.key)
		}
	}
}

// exampleSignature was computed outside this program, from the ids host/task, fleet-1 and p-1 and the secret below.
const (
	exampleSecret    = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	exampleSignature = "c6fee335fb2f44df01469e60f7b6a5f685cc040b2e60a1051a494010250017cb"
	exampleQuery     = "pID=p-1&FleetId=fleet-1&ComputeId=host%2Ftask&sdkLanguage=Go&Authorization=SigV4" +
		"&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKID%2F20261121%2Fus-east-1%2Fgamelift%2Faws4_request" +
		"&X-Amz-Date=20261121T101112Z&X-Amz-Signature=" + exampleSignature
)

func TestSignature(t *testing.T) {
	h, err := parseHello(exampleQuery)
	if err != nil {
		t.Fatal(err)
	}
	if got := h.signature.accessKey(); got != "AKID" {
		t.Errorf("access key %q, want AKID", got)
	}
	if err := h.signature.check(h.key, exampleSecret); err != nil {
		t.Error(err)
	}
	if err := h.signature.check(h.key, "another secret"); err == nil {
		t.Error("accepted with another secret")
	}
	for name, spoil := range map[string]func(*hello){
		"another process": func(h *hello) { h.key.Process = "p-2" },
		"another compute": func(h *hello) { h.key.Compute = "host" },
		"another time":    func(h *hello) { h.signature.date = "20261121T101113Z" },
		"another day":     func(h *hello) { h.signature.date = "20261122T101112Z" },
		"another service": func(h *hello) { h.signature.credential = "AKID/20261121/us-east-1/s3/aws4_request" },
		"no credential":   func(h *hello) { h.signature.credential = "" },
		"no signature":    func(h *hello) { h.signature.value = "" },
		"no algorithm":    func(h *hello) { h.signature.algorithm = "" },
	} {
		bad := h
		spoil(&bad)
		if err := bad.signature.check(bad.key, exampleSecret); err == nil {
			t.Errorf("accepted with %s", name)
		}
	}
}

func TestSignatureAge(t *testing.T) {
	signature := signature{date: "20261121T101112Z"}
	at := time.Date(2026, 11, 21, 10, 11, 12, 0, time.UTC)
	for _, tc := range []struct {
		age         time.Duration
		past, ahead time.Duration
		ok          bool
	}{
		{0, 15 * time.Minute, 15 * time.Minute, true},
		{14 * time.Minute, 15 * time.Minute, 15 * time.Minute, true},
		{16 * time.Minute, 15 * time.Minute, 15 * time.Minute, false},
		{-14 * time.Minute, 15 * time.Minute, 15 * time.Minute, true},
		{-16 * time.Minute, 15 * time.Minute, 15 * time.Minute, false},
		{24 * time.Minute, 25 * time.Minute, 15 * time.Minute, true},
		{-24 * time.Minute, 25 * time.Minute, 15 * time.Minute, false},
	} {
		if _, err := signature.checkAge(at.Add(tc.age), tc.past, tc.ahead); (err == nil) != tc.ok {
			t.Errorf("%s old, at most %s and %s ahead: got %v, want accepted=%v", tc.age, tc.past, tc.ahead, err, tc.ok)
		}
	}
}

func FuzzParseHello(f *testing.F) {
	f.Add(exampleQuery)
	f.Add("pID=p+1&FleetId=fleet-1&ComputeId=a/b&Authorization=tok+en/=1%2&%zz=%41&sdkLanguage=CSharp")
	f.Fuzz(func(t *testing.T, query string) {
		h, err := parseHello(query)
		if err != nil {
			return
		}
		if h.key.Process == "" || len(h.key.Process) > processIDBytes || !fleetIDForm.MatchString(h.key.Fleet) || !computeIDForm.MatchString(h.key.Compute) {
			t.Errorf("%q gave %v", query, h.key)
		}
		if h.signature.check(h.key, "secret") == nil {
			t.Errorf("%q is signed without the secret", query)
		}
	})
}

// The core keeps the key of a process, so its strings must not keep the request line, which is several times as long.
func TestKeptKeyIsNoPartOfTheQuery(t *testing.T) {
	query := strings.Clone(exampleQuery)
	h, err := parseHello(query)
	if err != nil {
		t.Fatal(err)
	}
	got := kept(h.key)
	if got != h.key {
		t.Errorf("kept %v of %v", got, h.key)
	}
	first := uintptr(unsafe.Pointer(unsafe.StringData(query)))
	for _, text := range []string{got.Fleet, got.Compute, got.Process} {
		if at := uintptr(unsafe.Pointer(unsafe.StringData(text))); at >= first && at < first+uintptr(len(query)) {
			t.Errorf("%q is a part of the query", text)
		}
	}
}
