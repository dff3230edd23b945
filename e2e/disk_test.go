package e2e

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"github.com/musterhq/muster/internal/linkclient"
	"github.com/musterhq/muster/internal/porttest"
	"github.com/musterhq/muster/internal/waittest"
)

// smallDisk mounts a small file system at a directory, which requires the privilege to mount.
func smallDisk(t *testing.T, dir string, bytes int) {
	t.Helper()
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+strconv.Itoa(bytes), "tmpfs", dir).CombinedOutput()
	if err != nil {
		cannotRun(t, "no right to mount a small disk here: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("unmount %s: %v %s", dir, err, out)
		}
	})
}

// fillDisk takes all space that is left in a directory with one file, and returns the file.
func fillDisk(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "..ballast")
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	for block := make([]byte, 1<<20); len(block) > 0; {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			block = block[:len(block)/2]
		} else {
			must(t, err)
		}
	}
	return path
}

// The disk becomes full under load, again and again: the service refuses writes while there is no space, with an error that clients
// retry, and accepts them by itself afterwards. Acknowledged changes exist, now and after a restart.
func TestAttackFullDisk(t *testing.T) {
	t.Parallel()
	s := newService(t, "--limit-players-per-game-session", "10000")
	smallDisk(t, s.data, 256<<20)
	t.Cleanup(s.kill) // before the disk goes
	s.start()
	p := s.prepare()
	server := p.dial("process-1", "")
	id := server.host(t, 10_000)
	var told []string
	reserve := func() error {
		out, err := p.api().CreatePlayerSession(t.Context(), &gamelift.CreatePlayerSessionInput{
			GameSessionId: &id, PlayerId: aws.String(strconv.Itoa(len(told))), PlayerData: aws.String(strings.Repeat("x", 2048))})
		if err == nil {
			told = append(told, *out.PlayerSession.PlayerSessionId)
		}
		return err
	}
	pid := s.cmd.Process.Pid
	for range 3 {
		for range 20 {
			must(t, reserve())
		}
		ballast := fillDisk(t, s.data)
		var refusal error
		for refusal == nil {
			refusal = reserve()
		}
		if !hasCode(refusal, "ThrottlingException") && !hasCode(refusal, "ServiceUnavailableException") {
			t.Errorf("a write on a full disk: got %v, want an error that clients try again after", refusal)
		}
		if why := p.unwell(); !strings.Contains(why, "no space") {
			t.Errorf("/healthz says %q, want it to say why", why)
		}
		must(t, os.Remove(ballast))
		waittest.Until(t, "writes after there is space again", func() bool { return reserve() == nil })
		s.staysHealthy()
	}
	if s.cmd.Process.Pid != pid || s.cmd.ProcessState != nil {
		t.Error("the process ended; want it to go on by itself")
	}
	for _, psess := range told {
		p.playerSession(psess)
	}
	p.kill()
	p.start()
	for _, psess := range told {
		p.playerSession(psess)
	}
}

// A write that found no space in the middle is not tried again: how much of it is durable is unknown. The run ends, and
// once there is space the next one begins from the journal, in the same process.
func TestAttackFullDiskInTheMiddleOfAWrite(t *testing.T) {
	t.Parallel()
	s := newService(t, "--disk-reserve", "0B") // so that nothing is refused before it fails
	smallDisk(t, s.data, 256<<20)
	t.Cleanup(s.kill) // before the disk goes
	s.start()
	checkDiskFault(t, s.prepare(), func() (end func()) {
		ballast := fillDisk(t, s.data)
		return func() { must(t, os.Remove(ballast)) }
	}, true)
}

// A disk that fails in another way, which requires no privileges: no file may grow beyond a limit.
func TestFailingDisk(t *testing.T) {
	t.Parallel()
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		cannotRun(t, "no prlimit here")
	}
	s := startService(t)
	checkDiskFault(t, s.prepare(), func() (end func()) {
		out, err := exec.Command(prlimit, "--pid", strconv.Itoa(s.cmd.Process.Pid), "--fsize=1").CombinedOutput()
		if err != nil {
			t.Fatalf("prlimit: %v %s", err, out)
		}
		return func() {} // the limit goes with the process
	}, false)
}

// unwell waits until the service reports that it is unhealthy, and returns the reason.
func (s *service) unwell() (why string) {
	s.t.Helper()
	waittest.Until(s.t, "the service to be unwell", func() bool {
		resp, err := http.Get(s.url() + "/healthz")
		must(s.t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		must(s.t, err)
		why = string(text)
		return resp.StatusCode == http.StatusServiceUnavailable
	})
	return why
}

// checkDiskFault breaks the disk. The service may recover automatically, or must be started again.
func checkDiskFault(t *testing.T, p *place, fault func() (end func()), recovers bool) {
	t.Helper()
	server := p.dial("process-1", "")
	id := server.host(t, 200)
	end := fault()

	var told []string // acknowledged player sessions
	var refusal error
	for i := 0; refusal == nil; i++ {
		// Large requests, since the journal may have some space reserved.
		out, err := p.api().CreatePlayerSession(t.Context(), &gamelift.CreatePlayerSessionInput{
			GameSessionId: &id, PlayerId: aws.String(strconv.Itoa(i)), PlayerData: aws.String(strings.Repeat("x", 2048))})
		if isError[*types.GameSessionFullException](err) {
			for _, psess := range told[max(0, len(told)-200):] {
				if refusal = server.RemovePlayer(t.Context(), id, psess); refusal != nil {
					break
				}
			}
			continue
		}
		if refusal = err; err == nil {
			told = append(told, *out.PlayerSession.PlayerSessionId)
		}
		if i > 1_000_000 {
			t.Fatal("a million writes on a full disk were acknowledged")
		}
	}
	if _, isLink := errors.AsType[*linkclient.StatusError](refusal); !isLink {
		refused(t, "a write on a full disk", refusal, "ServiceUnavailableException")
	}
	if err := p.unwell(); !strings.Contains(err, "no space") && !strings.Contains(err, "file too large") {
		t.Errorf("/healthz says %q, want it to say why", err)
	}
	if _, err := p.api().ListFleets(t.Context(), &gamelift.ListFleetsInput{}); err != nil && !hasCode(err, "ServiceUnavailableException") {
		t.Errorf("a read on a full disk: %v", err)
	}
	said, err := p.logs.until(t.Context(), "level=ERROR")
	must(t, err)
	if said = strings.ToLower(said); !strings.Contains(said, "no space") && !strings.Contains(said, "file too large") {
		t.Errorf("the log does not say why:\n%s", p.logs.tail(10))
	}

	if recovers {
		end()
		_, err := p.logs.until(t.Context(), "the service restarts from its journal")
		must(t, err)
		p.staysHealthy()
	} else {
		p.kill()
		end()
		p.start()
	}
	server.connect()
	must(t, server.Heartbeat(t.Context(), true))
	for _, psess := range told {
		p.playerSession(psess)
	}
	checkSession(t, p, id)
	p.mustReserve(id, "afterwards")
}

// The second of two processes on one data directory refuses to start and names the one that holds it.
func TestTwoProcessesOnOneDirectory(t *testing.T) {
	t.Parallel()
	s := startService(t)
	second := exec.Command(musterBinary, "serve", "--dev", "--data", s.data, "--listen", porttest.Free(t))
	second.Env = cleanEnvironment()
	out, err := second.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() <= 0 {
		t.Errorf("got %v, want a status other than 0", err)
	}
	if pid := strconv.Itoa(s.cmd.Process.Pid); !strings.Contains(string(out), pid) || !strings.Contains(string(out), s.data) {
		t.Errorf("the message names neither process %s nor directory %s:\n%s", pid, s.data, out)
	}
	s.staysHealthy()
	s.kill()
	s.start() // a killed process holds nothing
}
