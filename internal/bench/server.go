package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/identity"
)

// server is a service, or a bare one, in its own process.
type server struct {
	name string
	data string
	key  identity.AccessKey

	addr     string // of the port
	profiler string // address of Go's profiler
	ready    time.Duration

	process *os.Process
	exited  chan error

	lines struct {
		sync.Mutex
		last []string // lines of its log, for an unexpected end
	}
}

// perAddress is the limit of connections that a load from one machine would reach.
const perAddress = "--limit-connections-per-address"

const (
	startWait = 2 * time.Minute
	logKept   = 20
)

// start runs the binary with the arguments and waits until it listens.
func (b *bench) start(ctx context.Context, name, data string, arguments ...string) (*server, error) {
	key, known := b.keys[data]
	if !known {
		var err error
		if key, err = firstKey(ctx, data); err != nil {
			return nil, err
		}
		if b.keys == nil {
			b.keys = map[string]identity.AccessKey{}
		}
		b.keys[data] = key
	}
	s := &server{name: name, data: data, key: key, exited: make(chan error, 1)}
	if arguments[0] == "serve" && !slices.Contains(arguments, perAddress) {
		arguments = append(arguments, perAddress, "1000000") // all clients are on this machine
	}
	arguments = append(arguments, "--data", data, "--log-format", "json", "--pprof", "127.0.0.1:0")
	if !slices.Contains(arguments, "--listen") {
		arguments = append(arguments, "--listen", "127.0.0.1:0")
	}
	cmd := exec.Command(b.options.Binary, arguments...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MUSTER_") })
	log, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	s.process = cmd.Process
	listening := make(chan struct{})
	go func() {
		s.follow(log, listening)
		s.exited <- cmd.Wait()
	}()
	limit := time.NewTimer(startWait)
	defer limit.Stop()
	select {
	case <-listening:
		s.ready = time.Since(began)
		return s, s.waitReady(ctx, began)
	case err := <-s.exited:
		return nil, fmt.Errorf("%s ended before it listened: %w\n%s", name, err, s.lastLines())
	case <-limit.C:
		s.kill()
		return nil, fmt.Errorf("%s does not listen after %s\n%s", name, startWait, s.lastLines())
	case <-ctx.Done():
		s.kill()
		return nil, ctx.Err()
	}
}

// follow reads the log to its end; a full pipe would stop the server.
func (s *server) follow(log io.Reader, listening chan<- struct{}) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct{ Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &line) == nil {
			switch line.Msg {
			case "profiler listening":
				s.profiler = line.Address
			case "listening":
				s.addr = line.Address
				close(listening)
			}
		}
		s.lines.Lock()
		if len(s.lines.last) == logKept {
			s.lines.last = s.lines.last[1:]
		}
		s.lines.last = append(s.lines.last, lines.Text())
		s.lines.Unlock()
	}
	_, _ = io.Copy(io.Discard, log) // after a line that is too long
}

func (s *server) lastLines() string {
	s.lines.Lock()
	defer s.lines.Unlock()
	return strings.Join(s.lines.last, "\n")
}

// waitReady polls until the service is ready, and records how long that took since its start.
func (s *server) waitReady(ctx context.Context, began time.Time) error {
	for {
		if _, err := s.get(ctx, "http://"+s.addr+"/readyz"); err == nil {
			s.ready = time.Since(began)
			return nil
		}
		switch {
		case ctx.Err() != nil:
			s.kill()
			return ctx.Err()
		case time.Since(began) > startWait:
			s.kill()
			return fmt.Errorf("%s is not ready after %s\n%s", s.name, startWait, s.lastLines())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// kill ends the process without a warning, as a crash does, and waits until it is gone.
func (s *server) kill() {
	_ = s.process.Kill() // it may already have ended
	<-s.exited
}

// resident returns the current resident memory of the process, and peak its maximum; 0 where the system does not report it.
func (s *server) resident() int64 { return memoryOf(strconv.Itoa(s.process.Pid), "VmRSS:") }
func (s *server) peak() int64     { return memoryOf(strconv.Itoa(s.process.Pid), "VmHWM:") }

// liveHeap makes the process collect garbage and returns the size of the remaining heap.
func (s *server) liveHeap(ctx context.Context) (int64, error) {
	live, _, err := s.liveHeapParts(ctx)
	return live, err
}

// liveHeapParts is liveHeap and the part of it that consists of the databases' blocks and tables, which grow step by step to configured sizes.
func (s *server) liveHeapParts(ctx context.Context) (live, databases int64, err error) {
	text, err := s.profile(ctx, "heap?gc=1&debug=1")
	if err != nil {
		return 0, 0, err
	}
	_, rest, found := strings.Cut(string(text), "\n# HeapAlloc = ")
	digits, _, _ := strings.Cut(rest, "\n")
	live, err = strconv.ParseInt(digits, 10, 64)
	if !found || err != nil {
		return 0, 0, fmt.Errorf("the heap profile of %s has no HeapAlloc", s.name)
	}
	return live, allocatedBy(string(text), "github.com/cockroachdb/pebble/v2/internal/manual.New"), nil
}

// allocatedBy estimates how many live bytes a function has allocated. For each stack, a heap profile in text form has a line such as
// "1: 16777216 [2: 33554432] @ 0x1234 0x5678", with the number and the bytes of the sampled live allocations, then lines with its functions, and an
// empty line. An allocation of n bytes is sampled with a probability of 1-exp(-n/rate), so the sum is divided by that.
func allocatedBy(profile, function string) (sum int64) {
	_, stacks, _ := strings.Cut(profile, "\n") // the first line has the totals
	for stack := range strings.SplitSeq(stacks, "\n\n") {
		if !strings.Contains(stack, "\t"+function+"+0x") {
			continue
		}
		var count, bytes float64
		if _, err := fmt.Sscanf(stack, "%g: %g", &count, &bytes); err == nil && count > 0 {
			sum += int64(bytes / (1 - math.Exp(-bytes/count/float64(runtime.MemProfileRate))))
		}
	}
	return sum
}

// profile requests a profile of the process.
func (s *server) profile(ctx context.Context, what string) ([]byte, error) {
	return s.get(ctx, "http://"+s.profiler+"/debug/pprof/"+what)
}

// get reads a page of the process.
func (s *server) get(ctx context.Context, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	r.SetBasicAuth(s.key.ID, s.key.Secret)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s of %s: HTTP %d", url, s.name, answer.StatusCode)
	}
	return io.ReadAll(answer.Body)
}
