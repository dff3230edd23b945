package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/musterhq/muster/internal/credstore"
	"github.com/musterhq/muster/internal/hostname"
	"github.com/musterhq/muster/internal/linkclient"
	"github.com/musterhq/muster/internal/listen/devca"
	"github.com/musterhq/muster/internal/plural"
	"github.com/musterhq/muster/internal/socketerror"
)

// ports checks that the ports are free or belong to the service.
func (x *examination) ports(ctx context.Context) {
	s := &x.Settings
	for _, p := range []struct{ setting, address string }{
		{"listen", s.Listen}, {"partner-listen", s.PartnerListen}, {"operator-listen", s.OperatorListen}, {"cluster-listen", s.ClusterListen},
	} {
		if p.address == "" {
			continue
		}
		l, err := net.Listen("tcp", p.address)
		if err == nil {
			l.Close()
		}
		x.port(ctx, p.setting, p.address, err)
	}
}

// port examines the port of a setting; err is the result of binding it.
func (x *examination) port(ctx context.Context, setting, address string, err error) {
	check, cluster := "port of --"+setting, setting == "cluster-listen"
	_, port, _ := net.SplitHostPort(address) // settings has reported any mistake in it
	switch {
	case err == nil:
		x.add(check, OK, "", "%s is free, so no service runs there", address)
	case socketerror.InUse(err):
		x.taken(ctx, check, address, port, cluster)
	case errors.Is(err, syscall.EACCES):
		// The system checks this before it looks whether the port is in use, and systemd may give the right only to the service.
		if !x.ofService(ctx, check, address, listener(port), cluster) {
			x.add(check, Failure, "AmbientCapabilities=CAP_NET_BIND_SERVICE in the systemd unit, setcap cap_net_bind_service=+ep on the binary, or a port from 1024 on",
				"%s: this user may not bind port %s", address, port)
		}
	case socketerror.NotLocal(err):
		x.add(check, Failure, "name an address of this machine, or none, as in :"+port, "%s: this machine does not have the address", address)
	default:
		x.add(check, Failure, "correct the address", "%v", err)
	}
}

// ofService adds a finding if the service holds a port, or seems to. by is the process that listens there, from listener. The port between nodes does not
// serve HTTP.
func (x *examination) ofService(ctx context.Context, check, address, by string, cluster bool) bool {
	switch {
	case strings.HasPrefix(by, "muster ") || !cluster && x.Hangs == nil && isMuster(ctx, address):
		x.add(check, OK, "", "a service of Muster listens at %s", address)
	case by == "" && x.Hangs != nil:
		x.add(check, Skipped, "", "%s probably belongs to the service, which does not answer", address)
	default:
		return false
	}
	return true
}

// taken examines which program holds a port.
func (x *examination) taken(ctx context.Context, check, address, port string, cluster bool) {
	by := listener(port)
	if x.ofService(ctx, check, address, by, cluster) {
		return
	}
	if by == "" {
		by = "another program"
		if cluster {
			x.add(check, Skipped, "", "%s is in use; run the command as root to see whether Muster uses it", address)
			return
		}
	}
	x.add(check, Failure, "end that program, or choose another port", "%s is using port %s", by, port)
}

// isMuster asks the program at an address of this machine for its health.
func isMuster(ctx context.Context, address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if hostname.IsUnspecified(host) {
		host = "127.0.0.1"
	}
	for _, scheme := range []string{"http", "https"} {
		body, _, err := fetch(ctx, scheme+"://"+net.JoinHostPort(host, port)+"/healthz", &tls.Config{InsecureSkipVerify: true}, localPatience) // the answer is not trusted
		if err == nil && healthIn(body) != "" {
			return true
		}
		if timedOut(err) {
			return false
		}
	}
	return false
}

// healthIn returns the status in an answer of /healthz: ok or failed, or empty if the program that answered is not Muster.
func healthIn(body string) string {
	var health struct{ Status string }
	if json.Unmarshal([]byte(body), &health) != nil || health.Status != "ok" && health.Status != "failed" {
		return ""
	}
	return health.Status
}

// localPatience limits the wait for a program on this machine.
const localPatience = 3 * time.Second

// fetch reads the beginning of a page. The server may be any program.
func fetch(ctx context.Context, at string, c *tls.Config, within time.Duration) (body string, header http.Header, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return "", nil, err
	}
	client := http.Client{
		Transport:     &http.Transport{TLSClientConfig: c, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(r)
	if err != nil {
		return "", nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	if err == nil && answer.StatusCode >= http.StatusMultipleChoices && answer.StatusCode != http.StatusServiceUnavailable {
		err = fmt.Errorf("%s answers %s", at, answer.Status)
	}
	return string(text), answer.Header, err
}

// certificateSoon is how long before its expiry a certificate should have been replaced.
const certificateSoon = 21 * 24 * time.Hour

// certificateFiles checks the files of --tls-cert and --tls-key.
func (x *examination) certificateFiles(context.Context) {
	const check = "certificate"
	s := &x.Settings
	if s.TLSCert == "" {
		return
	}
	pair, err := tls.LoadX509KeyPair(credstore.Visible(s.TLSCert), credstore.Visible(s.TLSKey))
	if err != nil {
		x.add(check, Failure, "provide the chain, starting with the host's certificate, and its key, both in PEM", "%s, %s: %v", s.TLSCert, s.TLSKey, err)
		return
	}
	leaf := pair.Leaf
	host := ""
	if u, err := url.Parse(s.PublicURL); err == nil {
		host = u.Hostname()
	}
	if host != "" && leaf.VerifyHostname(host) != nil {
		x.add(check, Failure, "get a certificate for that name", "%s is for %s, not for %s of --public-url", s.TLSCert, strings.Join(leaf.DNSNames, ", "), host)
		return
	}
	if x.expiry(check, leaf) {
		x.add(check, OK, "", "%s is for %s, valid until %s, with %d more in its chain", s.TLSCert, strings.Join(leaf.DNSNames, ", "), day(leaf.NotAfter), len(pair.Certificate)-1)
	}
}

// expiry adds a finding if a certificate is not valid or expires soon.
func (x *examination) expiry(check string, c *x509.Certificate) (well bool) {
	now := time.Now()
	switch {
	case now.After(c.NotAfter):
		x.add(check, Failure, "renew it; the service reloads the files by itself", "it expired on %s", day(c.NotAfter))
	case now.Before(c.NotBefore):
		x.add(check, Failure, "wait, or correct the clock of this machine", "it is not valid before %s", day(c.NotBefore))
	case c.NotAfter.Sub(now) < min(certificateSoon, c.NotAfter.Sub(c.NotBefore)/4):
		x.add(check, Warning, "renew it, and find out why it was not renewed automatically", "it expires on %s", day(c.NotAfter))
	default:
		return true
	}
	return false
}

// publicURL checks how clients and game servers reach the service: name, TLS, health, WebSockets through proxies, and the service's clock.
func (x *examination) publicURL(ctx context.Context) {
	const check = "public URL"
	at := x.Endpoint
	u, err := url.Parse(at)
	if err != nil || u.Hostname() == "" {
		x.add(check, Failure, "set --public-url to the address that game servers use", "%q is not a URL", at)
		return
	}
	if x.Settings.PublicURL == "" {
		x.add(check, Skipped, "set --public-url if game servers run on other machines", "none is set; examining %s instead", at)
	}
	if addresses, err := net.DefaultResolver.LookupHost(ctx, u.Hostname()); err != nil {
		x.add(check, Failure, "create a DNS record for it", "the name %s does not resolve: %v", u.Hostname(), err)
		return
	} else if net.ParseIP(u.Hostname()) == nil {
		x.add(check, OK, "", "%s is at %s", u.Hostname(), strings.Join(addresses, ", "))
	}
	if x.silent {
		x.skip(check)
		return
	}
	trust := x.trust()
	body, header, err := fetch(ctx, strings.TrimSuffix(at, "/")+"/healthz", trust, patience)
	if err != nil {
		x.silent = timedOut(err)
		x.add(check, Failure, x.whyUnreachable(err), "%v", err)
		return
	}
	switch healthIn(body) {
	case "ok":
		x.add(check, OK, "", "the service at %s is healthy", at)
	case "failed":
		x.add(check, Failure, "read the log of the service", "the service at %s cannot work: %.200s", at, strings.TrimSpace(body))
	default:
		x.add(check, Failure, "route "+u.Host+" to the service", "the program that answers at %s is not Muster: %.80q", at, body)
		return
	}
	if u.Scheme == "https" {
		x.chain(ctx, u, trust)
	}
	x.dateOf(header)
	x.webSocket(ctx, u, trust)
}

// trust returns the system's authorities, and with --dev also the installation's own.
func (x *examination) trust() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if x.Settings.Dev {
		if a, err := devca.Load(x.Settings.Data); err == nil {
			c.RootCAs = a.Pool()
		}
	}
	return c
}

func (x *examination) whyUnreachable(err error) string {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "give the service the whole chain of a certificate for this name, from an authority that clients trust: Go clients and servers verify it"
	}
	if socketerror.Refused(err) {
		return x.start("start the service, or open the port in front of it")
	}
	if timedOut(err) {
		dial, ok := errors.AsType[*net.OpError](err)
		if remote := ok && dial.Op == "dial" && !x.local(); remote {
			return "open the port in the firewall: nothing answers at all"
		}
		return "something accepts the connection and does not answer, as a service that hangs: " + restart
	}
	return "make sure that the address reaches the service"
}

func timedOut(err error) bool { return os.IsTimeout(err) || errors.Is(err, context.DeadlineExceeded) }

// local reports whether the endpoint is an address of this machine, so that no firewall is in between.
func (x *examination) local() bool {
	u, err := url.Parse(x.Endpoint)
	return err == nil && hostname.IsLoopback(u.Hostname())
}

// start returns the next step if no service answers. If a service runs on the data directory, it must have another address.
func (x *examination) start(do string) string {
	if x.Running {
		return "a service runs on " + x.Settings.Data + " with other settings: give this command the same settings, with --config FILE or the flags and variables of the service"
	}
	return do
}

// chain checks the certificate that clients see, which may be a proxy's.
func (x *examination) chain(ctx context.Context, u *url.URL, trust *tls.Config) {
	const check = "TLS of the public URL"
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	port := u.Port()
	if port == "" {
		port = "443"
	}
	d := tls.Dialer{Config: trust}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		x.add(check, Failure, x.whyUnreachable(err), "%v", err)
		return
	}
	defer conn.Close()
	leaf := conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
	if x.expiry(check, leaf) {
		x.add(check, OK, "", "the certificate is trusted on this machine, and valid until %s", day(leaf.NotAfter))
	}
}

// dateOf compares the clock of the service with that of this machine.
func (x *examination) dateOf(header http.Header) {
	const check = "clock of the service"
	at, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return // a proxy may remove it
	}
	switch off := time.Since(at).Truncate(time.Second); {
	case off.Abs() > 5*time.Minute:
		x.add(check, Failure, "synchronize both clocks", "it differs from the clock of this machine by %s: signatures made here are refused", plural.Duration(off.Abs()))
	case off.Abs() > 5*time.Second:
		x.add(check, Warning, "synchronize both clocks", "it differs from the clock of this machine by %s", plural.Duration(off.Abs()))
	default:
		x.add(check, OK, "", "it agrees with the clock of this machine")
	}
}

// noFleet cannot be the id of a fleet, so the service refuses its game servers before it checks a token. Such a connection is therefore not a failed sign-in,
// which would count against this address and be recorded in the audit log.
const noFleet = "muster_doctor"

// webSocket connects like a game server. The fleet does not exist, so the service must refuse the connection. Any other answer means that something in between
// does not forward WebSockets.
func (x *examination) webSocket(ctx context.Context, u *url.URL, trust *tls.Config) {
	const check = "WebSockets"
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	at := *u
	at.Scheme = strings.Replace(u.Scheme, "http", "ws", 1)
	client, err := linkclient.Dial(ctx, linkclient.Options{URL: at.String(), Process: "muster-doctor", Compute: "muster-doctor", Fleet: noFleet, Token: "none", TLS: trust})
	if err == nil {
		client.Close(1000)
		x.add(check, OK, "", "game servers can connect to %s", at.String())
		return
	}
	do := "make the proxy forward WebSocket upgrades (Upgrade and Connection), at every path"
	if refused, ok := errors.AsType[*linkclient.RefusedError](err); ok {
		switch {
		case refused.Status == http.StatusBadRequest && strings.Contains(refused.Body, noFleet):
			x.add(check, OK, "", "%s refuses a game server without a fleet, as it should", at.String())
			return
		case refused.Status == http.StatusServiceUnavailable:
			do = "look at the answer of /readyz, the log of the service, and muster cluster status at a node of a cluster"
		}
	}
	x.add(check, Failure, do, "a game server that connects to %s gets: %v", at.String(), err)
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02") }
