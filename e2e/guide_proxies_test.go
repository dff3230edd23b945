package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/porttest"
	"github.com/musterhq/muster/internal/waittest"
)

// front is a proxy in front of a service, with a configuration from the guide.
type front struct {
	port    string // of the proxy
	service string // address
	dir     string // for the proxy's files
	ca      string // file
	trusted *x509.CertPool
	cert    string // file
	key     string // file
}

// config returns the guide's configuration for a proxy. Each pair replaces a part of it, which must be there.
func (f *front) config(t *testing.T, language string, pairs ...string) string {
	t.Helper()
	guide, err := os.ReadFile("../docs/guide/proxies.md")
	must(t, err)
	_, text, ok := strings.Cut(string(guide), "```"+language+"\n")
	text, _, closed := strings.Cut(text, "```\n")
	if !ok || !closed {
		t.Fatalf("the guide has no configuration in %s", language)
	}
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the guide's configuration for %s has no %q", language, pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

func (f *front) file(t *testing.T, name, text string) string {
	t.Helper()
	name = filepath.Join(f.dir, name)
	must(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// address is that of the proxy. Caddy chooses a certificate by the name in the handshake, which no client sends for an IP address.
func (f *front) address() string { return net.JoinHostPort("localhost", f.port) }

// fronts start the proxies. Only names, ports, certificates and the number of connections differ from the guide.
var fronts = map[string]func(t *testing.T, f *front) *exec.Cmd{
	"nginx": func(t *testing.T, f *front) *exec.Cmd {
		site := f.file(t, "muster.conf", f.config(t, "nginx", "127.0.0.1:8080", f.service, "listen 443", "listen "+f.port, "muster.example.com", "localhost",
			"/etc/ssl/muster.crt", f.cert, "/etc/ssl/muster.key", f.key))
		text := "daemon off;\nmaster_process off;\npid " + f.dir + "/nginx.pid;\nevents {}\nhttp {\n\taccess_log off;\n"
		for _, what := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
			text += "\t" + what + "_temp_path " + f.dir + "/" + what + ";\n"
		}
		return exec.Command("/usr/sbin/nginx", "-e", "stderr", "-c", f.file(t, "nginx.conf", text+"\tinclude "+site+";\n}\n"))
	},
	"haproxy": func(t *testing.T, f *front) *exec.Cmd {
		both := ""
		for _, part := range []string{f.cert, f.key} {
			text, err := os.ReadFile(part)
			must(t, err)
			both += string(text)
		}
		return exec.Command("/usr/sbin/haproxy", "-f", f.file(t, "haproxy.cfg", f.config(t, "haproxy", "127.0.0.1:8080", f.service, "bind :443", "bind :"+f.port,
			"/etc/ssl/muster.pem", f.file(t, "both.pem", both), "maxconn 100000", "maxconn 1000")))
	},
	"caddy": func(t *testing.T, f *front) *exec.Cmd {
		// HTTP/3 would need the UDP port, which porttest holds.
		text := f.config(t, "caddyfile", "127.0.0.1:8080", f.service, "muster.example.com {", "https://"+f.address()+" {\n\ttls "+f.cert+" "+f.key)
		return exec.Command("/usr/bin/caddy", "run", "--adapter", "caddyfile", "--config",
			f.file(t, "Caddyfile", "{\n\tadmin off\n\tauto_https disable_redirects\n\tservers {\n\t\tprotocols h1 h2\n\t}\n}\n"+text))
	},
}

// The guide's proxies let through what clients, game servers and uploads need, and report the client's address.
func TestProxiesOfTheGuide(t *testing.T) {
	t.Parallel()
	for name, start := range fronts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAuthority(t)
			_, port, err := net.SplitHostPort(porttest.Free(t))
			must(t, err)
			f := &front{port: port, dir: t.TempDir(), trusted: a.pool()}
			f.cert, f.key = inFiles(t, a.certificate("localhost", x509.ExtKeyUsageServerAuth))
			f.ca = f.file(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})))

			s := newService(t, "--dev=false", "--public-url", "https://"+f.address(), "--trusted-proxies", "127.0.0.1")
			f.service = s.address
			cmd := start(t, f)
			if cmd.Err == nil {
				_, cmd.Err = os.Stat(cmd.Path)
			}
			if cmd.Err != nil {
				cannotRun(t, "%v: make test installs it only with CI=1, because Debian's package also starts it", cmd.Err)
			}
			cmd.Env = cleanEnvironment("HOME=" + f.dir)
			proxy := run(t, cmd)
			id, secret := s.key("admin")
			s.start()
			f.check(t, proxy, s, id, secret)
		})
	}
}

func (f *front) check(t *testing.T, proxy *program, s *service, id, secret string) {
	const client = "127.0.0.9"
	dial := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(client)}}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: f.trusted}, ForceAttemptHTTP2: true,
		DialContext: dial.DialContext,
	}
	t.Cleanup(transport.CloseIdleConnections)
	waittest.Until(t, "the proxy leads to the service", func() bool {
		answer, err := (&http.Client{Transport: transport}).Get("https://" + f.address() + "/healthz")
		if err != nil {
			select {
			case <-proxy.exited:
				t.Fatal("the proxy has ended")
			default:
			}
			return false
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK && (answer.ProtoMajor != 2 || answer.Header.Get("Strict-Transport-Security") == "") {
			t.Fatalf("%s, %v: want HTTP/2, and that the service knows that the client uses TLS", answer.Proto, answer.Header)
		}
		return answer.StatusCode == http.StatusOK
	})

	api := func(secret string) *gamelift.Client {
		return gamelift.New(gamelift.Options{
			Region: region, BaseEndpoint: aws.String("https://" + f.address()), RetryMaxAttempts: 1,
			Credentials: credentials.NewStaticCredentialsProvider(id, secret, ""), HTTPClient: wholeAnswers{&http.Client{Transport: transport}, s.calls},
		})
	}
	if _, err := api("wrong").ListFleets(t.Context(), &gamelift.ListFleetsInput{}); !hasCode(err, "InvalidSignatureException") {
		t.Errorf("a wrong secret: %v", err)
	}
	waittest.Until(t, "the service sees the client's address", func() bool { return strings.Contains(s.logs.tail(20), "reason=wrong_secret address="+client) })

	s.client = api(secret)
	p := s.prepare()
	p.hosting(sdkOptions{url: "wss://" + f.address(), env: []string{"SSL_CERT_FILE=" + f.ca}}, 1)

	for _, args := range [][]string{
		{"doctor", "--data", s.data, "--listen", s.address, "--public-url", "https://" + f.address(), "--trusted-proxies", "127.0.0.1", "--fleet", p.fleet, "--compute", p.compute},
		{"build", "push", buildRoot(t, 3<<20), "--server", "https://" + f.address(), "--name", "arena"}, // more than nginx accepts by default
	} {
		cmd := exec.Command(musterBinary, args...)
		cmd.Env = cleanEnvironment("HOME="+f.dir, "SSL_CERT_FILE="+f.ca, "AWS_ACCESS_KEY_ID="+id, "AWS_SECRET_ACCESS_KEY="+secret)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("muster %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
