package export

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	domainaudit "github.com/musterhq/muster/internal/domain/audit"
)

// TargetsMax is the maximum number of receivers of the audit log.
const TargetsMax = 4

// Target is a receiver, as the setting names it.
type Target struct {
	Name string // the URL without its query; or OTLP

	network  string // udp, tcp or tls
	address  string // HOST:PORT
	ca       string // file of the authorities that may have issued the receiver's certificate; empty: those of the system
	cert, pk string // files of the client certificate and its key; empty: none
}

// OTLP is the name of the target for the OpenTelemetry collector.
const OTLP = "otlp"

// defaultPorts are those of RFC 5426, of RFC 6587's common use, and of RFC 5425.
var defaultPorts = map[string]string{"udp": "514", "tcp": "601", "tls": "6514"}

const want = "want otlp or a URL such as syslog+tls://log.example.com:6514, syslog+tcp://… or syslog+udp://…"

// Parse reads receivers, separated by spaces. Its errors repeat no part of a URL that may be a secret.
func Parse(text string) (all []Target, err error) {
	for _, field := range strings.Fields(text) {
		t, err := parse(field)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(x Target) bool { return x.Name == t.Name }) {
			return nil, fmt.Errorf("%s is named twice", t.Name)
		}
		if all = append(all, t); len(all) > TargetsMax {
			return nil, fmt.Errorf("more than %d receivers", TargetsMax)
		}
	}
	return all, nil
}

func parse(text string) (t Target, err error) {
	if text == OTLP {
		return Target{Name: OTLP}, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return t, errors.New("a receiver is not a URL; " + want)
	}
	network, isSyslog := strings.CutPrefix(u.Scheme, "syslog+")
	port, known := defaultPorts[network]
	switch {
	case !isSyslog || !known:
		return t, fmt.Errorf("a receiver has the scheme %.20q; %s", u.Scheme, want)
	case u.User != nil || strings.Contains(u.Host, "@"):
		return t, errors.New("the URL of a receiver has a user or password; syslog has neither, a certificate is named by ?cert=FILE&key=FILE")
	case u.Hostname() == "" || u.Opaque != "" || u.Path != "" && u.Path != "/" || u.Fragment != "":
		return t, errors.New("the URL of a receiver has no host, or a path or fragment; " + want)
	}
	if u.Port() != "" {
		port = u.Port()
	}
	t = Target{network: network, address: net.JoinHostPort(u.Hostname(), port)}
	t.Name = u.Scheme + "://" + t.address
	if len(t.Name) > domainaudit.ReceiverMax {
		return t, fmt.Errorf("the URL of a receiver is longer than %d bytes", domainaudit.ReceiverMax)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return t, fmt.Errorf("%s: the query is malformed", t.Name)
	}
	for key, values := range query {
		to, ok := map[string]*string{"ca": &t.ca, "cert": &t.cert, "key": &t.pk}[key]
		switch {
		case !ok || network != "tls":
			return t, fmt.Errorf("%s: parameter %.20q, want ca, cert and key, and those of syslog+tls only", t.Name, key)
		case len(values) != 1 || values[0] == "":
			return t, fmt.Errorf("%s: parameter %s, want it once, with a file", t.Name, key)
		}
		*to = values[0]
	}
	if (t.cert == "") != (t.pk == "") {
		return t, fmt.Errorf("%s: want both cert and key, or neither", t.Name)
	}
	return t, nil
}
