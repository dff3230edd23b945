package e2e

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/porttest"
	"github.com/musterhq/muster/internal/waittest"
)

// rsyslog is Debian's receiver of syslog, over TLS, which writes each message before it reads the next.
type rsyslog struct {
	t      *testing.T
	config string
	file   string // of received messages
	cmd    *exec.Cmd
}

func startRsyslog(t *testing.T) (r *rsyslog, target string) {
	t.Helper()
	program, err := exec.LookPath("rsyslogd")
	if err != nil {
		if program = "/usr/sbin/rsyslogd"; exec.Command(program, "-v").Run() != nil {
			cannotRun(t, "no rsyslogd: scripts/test-needs.sh installs it")
		}
	}
	dir, at := t.TempDir(), porttest.Free(t)
	a := newAuthority(t)
	cert, key := inFiles(t, a.certificate("log", x509.ExtKeyUsageServerAuth))
	own, ownKey := inFiles(t, a.certificate("muster", x509.ExtKeyUsageClientAuth))
	ca := filepath.Join(dir, "ca.pem")
	must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}), 0o600))
	r = &rsyslog{t: t, config: filepath.Join(dir, "rsyslog.conf"), file: filepath.Join(dir, "messages")}
	host, port, _ := strings.Cut(at, ":")
	must(t, os.WriteFile(r.config, []byte(fmt.Sprintf(`
global(workDirectory=%q maxMessageSize="8k" defaultNetstreamDriver="gtls" defaultNetstreamDriverCAFile=%q defaultNetstreamDriverCertFile=%q defaultNetstreamDriverKeyFile=%q)
main_queue(queue.type="Direct")
module(load="imtcp" streamDriver.name="gtls" streamDriver.mode="1" streamDriver.authMode="x509/certvalid")
input(type="imtcp" address=%q port=%q)
template(name="parsed" type="string" string="%%syslogfacility%% %%syslogseverity%% %%app-name%% %%msgid%% %%structured-data%% %%msg%%\n")
action(type="omfile" file=%q template="parsed")
`, dir, ca, cert, key, host, port, r.file)), 0o600))
	r.cmd = exec.Command(program, "-n", "-f", r.config, "-i", "NONE")
	r.start()
	t.Cleanup(r.kill)
	return r, "syslog+tls://" + at + "?ca=" + ca + "&cert=" + own + "&key=" + ownKey
}

func (r *rsyslog) start() {
	r.t.Helper()
	r.cmd = exec.Command(r.cmd.Args[0], r.cmd.Args[1:]...)
	out := newOutput()
	r.cmd.Stdout, r.cmd.Stderr = out, out
	must(r.t, r.cmd.Start())
}

// kill ends it as kill -9 does.
func (r *rsyslog) kill() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait() // it was killed
}

// entries returns the received entries in the order of their first arrival.
func (r *rsyslog) entries() (all []audit.Document, text string) {
	r.t.Helper()
	content, err := os.ReadFile(r.file)
	if err != nil {
		return nil, ""
	}
	for line := range strings.Lines(string(content)) {
		if !strings.HasSuffix(line, "\n") {
			break // it was killed while it wrote, or writes
		}
		head, entry, ok := strings.Cut(line, "] {")
		var d audit.Document
		if err := json.Unmarshal([]byte("{"+entry), &d); !ok || err != nil {
			r.t.Fatalf("%v: %q", err, line)
		}
		if want := fmt.Sprintf(`13 5 muster audit [meta sequenceId="%d"]`, d.No); !strings.HasPrefix(head, want) && !strings.HasPrefix(head, strings.Replace(want, " 5 ", " 4 ", 1)) {
			r.t.Errorf("%s, want %s", head, want)
		}
		if len(all) > 0 && d.No <= all[len(all)-1].No {
			continue
		}
		all = append(all, d)
	}
	return all, string(content)
}

// checkExported waits until a receiver has all entries of a service's log.
func checkExported(t *testing.T, s *service, id, secret string, got func() []audit.Document) {
	t.Helper()
	out, err := s.remote(id, secret, "audit", "--json", "--limit", "0")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := map[uint64]string{}
	for line := range strings.Lines(out) {
		var d audit.Document
		must(t, json.Unmarshal([]byte(line), &d))
		want[d.No] = d.Hash
	}
	waittest.Until(t, "the receiver has every entry", func() bool { all := got(); return len(all) > 0 && all[len(all)-1].No >= uint64(len(want)) })
	for i, d := range got() {
		if hash, ok := want[d.No]; d.No != uint64(i+1) || ok && d.Hash != hash {
			t.Errorf("message %d is entry %d: %+v", i, d.No, d)
		}
	}
}

// TestAuditExport: rsyslog over TLS with certificates, and a collector of OpenTelemetry, get each entry in order, although rsyslog and the service are killed in between.
func TestAuditExport(t *testing.T) {
	t.Parallel()
	r, target := startRsyslog(t)
	c := startCollector(t)
	s, _ := startProduction(t, "--ended-linger", "1ms", "--audit-export", target+" otlp", "--otlp-endpoint", c.url)
	id, secret := s.key("admin")
	admin := s.apiWith(id, secret)
	n := 0
	create := func(count int) {
		t.Helper()
		for range count {
			n++
			_, err := admin.CreateLocation(t.Context(), &gamelift.CreateLocationInput{LocationName: aws.String(fmt.Sprint("custom-", n))})
			must(t, err)
		}
	}
	create(30)
	waittest.Until(t, "the first entries arrive", func() bool { all, _ := r.entries(); return len(all) > 10 })
	create(10)
	r.kill()
	create(30)
	s.kill()
	s.start()
	create(10)
	waittest.Until(t, "the log says that entries wait", func() bool {
		return strings.Contains(s.logs.String(), "receiver of the audit log does not accept entries")
	})
	r.start()
	create(10)
	s.kill()
	s.start()
	create(10)
	checkExported(t, s, id, secret, func() []audit.Document { all, _ := r.entries(); return all })
	checkExported(t, s, id, secret, func() (all []audit.Document) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, body := range c.logs {
			var d audit.Document
			must(t, json.Unmarshal([]byte(body), &d))
			if len(all) == 0 || d.No > all[len(all)-1].No {
				all = append(all, d)
			}
		}
		return all
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, text := r.entries(); strings.Contains(text, secret) || strings.Contains(strings.Join(c.logs, ""), secret) {
		t.Error("a secret was exported")
	}
}

// TestClusterAuditExport: a cluster exports each entry once, from the leader, and the next leader continues when it is killed.
func TestClusterAuditExport(t *testing.T) {
	t.Parallel()
	r, target := startRsyslog(t)
	nodes := threeNodes(t, "--audit-export", target)
	create := func(at *service, name string) {
		t.Helper()
		waittest.Until(t, "a location is created", func() bool {
			_, err := at.client.CreateLocation(t.Context(), &gamelift.CreateLocationInput{LocationName: &name})
			return err == nil || strings.Contains(err.Error(), "Conflict")
		})
	}
	for i := range 20 {
		create(nodes[i%3], fmt.Sprint("custom-a", i))
	}
	waittest.Until(t, "the first entries arrive", func() bool { all, _ := r.entries(); return len(all) > 10 })
	if out, err := nodes[2].remote("any", "any", "audit", "verify"); err != nil || strings.Count(out, "the audit log is intact") != 3 {
		t.Errorf("%v: %s\nwant the logs of three nodes", err, out)
	}
	nodes[0].kill()
	for i := range 20 {
		create(nodes[1+i%2], fmt.Sprint("custom-b", i))
	}
	checkExported(t, nodes[1], "any", "any", func() []audit.Document { all, _ := r.entries(); return all })
	if out, err := nodes[1].remote("any", "any", "audit", "verify"); err == nil || strings.Count(out, "the audit log is intact") != 2 || !strings.Contains(out, "cannot be reached") {
		t.Errorf("%v: %s\nwant the logs of two nodes, and an error about the third", err, out)
	}
}
