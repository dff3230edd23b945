package e2e

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

// A machine has one clock, and time namespaces do not change the time of day. So the test patches the code that the kernel maps into each process for reading the clock (the
// vDSO): from then on the process gets another time of day, while its monotonic clock stays, as if the clock of its machine was set. The binary needs no support for that.

// shiftable reports whether the clock of a process can be set here.
const shiftable = runtime.GOARCH == "amd64"

// trampoline replaces clock_gettime: it asks the kernel, and adds the seconds stored after it to the time of day.
var trampoline = []byte{
	0xb8, 0xe4, 0, 0, 0, // mov eax, 228 (clock_gettime)
	0x0f, 0x05, // syscall
	0x85, 0xff, // test edi, edi (CLOCK_REALTIME is 0)
	0x75, 0x0a, // jnz to ret
	0x48, 0x8b, 0x0d, 6, 0, 0, 0, // mov rcx, [the seconds]
	0x48, 0x01, 0x0e, // add [rsi], rcx
	0xc3,       // ret
	0x90, 0x90, // the seconds follow, aligned
}

// jumpSize is how many bytes of clock_gettime a jump to the trampoline overwrites.
const jumpSize = 5

// setClock shifts the time of day of a process, which may be running or stopped. 0 corrects it, as does a restart.
func setClock(process *os.Process, ahead time.Duration) error {
	pid := process.Pid
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer memory.Close()
	from, image, err := readVDSO(pid, memory)
	if err != nil {
		return err
	}
	entry, err := entryOf(image, "__vdso_clock_gettime")
	if err != nil {
		return err
	}
	place := uint64(len(image)-len(trampoline)-8) &^ 15 // the image ends with unused bytes
	seconds := binary.LittleEndian.AppendUint64(nil, uint64(int64(ahead/time.Second)))
	if bytes.Equal(image[place:][:len(trampoline)], trampoline) {
		_, err := memory.WriteAt(seconds, int64(from+place)+int64(len(trampoline)))
		return err
	}
	if room := image[place : place+uint64(len(trampoline))+8]; !bytes.Equal(room, make([]byte, len(room))) {
		return errors.New("the vDSO of this kernel has no unused bytes at its end")
	}
	if _, err := memory.WriteAt(append(bytes.Clone(trampoline), seconds...), int64(from+place)); err != nil {
		return err
	}
	jump := binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(place-entry-jumpSize))
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return errors.New("a thread of the process was always about to read the clock")
		}
		_ = process.Signal(syscall.SIGSTOP) // fails only when it is over
		clear, err := outside(pid, from+entry, jumpSize)
		if clear {
			_, err = memory.WriteAt(jump, int64(from+entry))
		}
		_ = process.Signal(syscall.SIGCONT)
		if clear || err != nil {
			return err
		}
	}
}

// readVDSO returns the address and the content of a process's vDSO.
func readVDSO(pid int, memory *os.File) (from uint64, image []byte, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, nil, err
	}
	for line := range strings.Lines(string(maps)) {
		if !strings.Contains(line, "[vdso]") {
			continue
		}
		var to uint64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
			return 0, nil, err
		}
		image = make([]byte, to-from)
		_, err := memory.ReadAt(image, int64(from))
		return from, image, err
	}
	return 0, nil, fmt.Errorf("process %d has no vDSO", pid)
}

// entryOf returns the address of a function in an image.
func entryOf(image []byte, name string) (uint64, error) {
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, err
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return 0, err
	}
	for _, s := range symbols {
		if s.Name == name {
			return s.Value, nil
		}
	}
	return 0, fmt.Errorf("the vDSO has no %s", name)
}

// outside waits until all threads of a stopped process have stopped, and reports whether none of them is in a range of its code.
func outside(pid int, from, size uint64) (bool, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil || len(tasks) == 0 {
		return false, fmt.Errorf("process %d has %d threads: %v", pid, len(tasks), err)
	}
	for _, task := range tasks {
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			stat, err := os.ReadFile(filepath.Join(task, "stat"))
			if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) { // the thread ended before the process stopped
				break
			}
			if err != nil {
				return false, err
			}
			if _, rest, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(rest, "T") {
				break
			}
			if time.Now().After(end) {
				return false, fmt.Errorf("a thread of process %d does not stop", pid)
			}
		}
		text, err := os.ReadFile(filepath.Join(task, "syscall")) // ends with the program counter
		if err != nil {
			continue // it ended
		}
		words := strings.Fields(string(text))
		var at uint64
		if _, err := fmt.Sscanf(words[len(words)-1], "0x%x", &at); err != nil {
			return false, fmt.Errorf("%s/syscall: %q", task, text)
		}
		if at >= from && at < from+size {
			return false, nil
		}
	}
	return true, nil
}

// TestClockSetBack sets the clock of the machine back by an hour while game servers are connected, and then corrects it. Rate limits and silence of a connection
// must not depend on the time of day.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	if !shiftable {
		t.Skip("the test knows the clock of amd64 only")
	}
	p := startService(t).prepare()
	b := p.dial("process-1", "")
	must(t, b.Activate(t.Context(), 7777))
	for _, ahead := range []time.Duration{-time.Hour, 0, time.Hour, 0} {
		must(t, setClock(p.cmd.Process, ahead))
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), requestWait)
			err := b.Heartbeat(ctx, true)
			cancel()
			if err != nil {
				t.Fatalf("with a clock %s ahead: %v", ahead, err)
			}
		}
	}
}

// A seat that its player does not take becomes free on time, even if the clock of the machine was set back by an hour, or is behind the last written time when a service starts again.
func TestDeadlinesEndWithAClockSetBack(t *testing.T) {
	t.Parallel()
	if !shiftable {
		t.Skip("the test knows the clock of amd64 only")
	}
	s := startService(t, "--reservation", "2s")
	p := s.prepare()
	seat := func(player string) {
		t.Helper()
		p.startArena()
		game := p.createGameSession(2)
		s.untilGameSession(*game.GameSessionId, types.GameSessionStatusActive)
		s.untilPlayer(s.mustReserve(*game.GameSessionId, player), types.PlayerSessionStatusTimedout)
	}
	must(t, setClock(s.cmd.Process, -time.Hour))
	seat("PlayerOne")
	must(t, setClock(s.cmd.Process, time.Hour))
	seat("PlayerTwo")
	s.kill() // the clock is right again
	s.start()
	seat("PlayerThree")
}
