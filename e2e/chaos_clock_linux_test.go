package e2e

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

// A machine has one clock, and time namespaces leave the time of day alone. So the test patches what the kernel maps into each process to read the clock (the vDSO): the
// process gets another time of day from then on, its monotonic clock stays, as after the clock of its machine was set. It needs nothing of the binary.

// shiftable reports whether the clock of a process can be set here.
const shiftable = runtime.GOARCH == "amd64"

// trampoline replaces clock_gettime: it asks the kernel, and adds the seconds behind it to the time of day.
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

// jumpSize is how much of clock_gettime a jump to the trampoline takes.
const jumpSize = 5

// setClock shifts the time of day of the node's process, which runs or stands still for it: 0 makes it right again. A restart does, too.
func (x *clusterNode) setClock(ahead time.Duration) error {
	cmd, _ := x.process()
	pid := cmd.Process.Pid
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
		thaw := x.freeze()
		clear, err := outside(pid, from+entry, jumpSize)
		if clear {
			_, err = memory.WriteAt(jump, int64(from+entry))
		}
		thaw()
		if clear || err != nil {
			return err
		}
	}
}

// readVDSO returns where the vDSO of a process is, and what it has.
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

// entryOf is where a function of an image begins.
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

// outside waits until all threads of a stopped process stand, and reports whether none of them is in a range of its code.
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

// wrongClock sets the clock of a node an hour ahead or behind, and has it lose and take the office. Waits of seconds end, those of minutes do not.
func (x *chaos) wrongClock(victim *clusterNode, r *rand.Rand) error {
	ctx, api := x.t.Context(), x.api
	ahead := time.Hour
	if r.IntN(2) == 0 {
		ahead = -ahead
	}
	x.c.note(fmt.Sprintf("the clock of node %d is %s ahead", victim.no+1, ahead))
	name := fmt.Sprintf("clock-%d", r.Uint64())
	begin := func(queue string, seconds int32) (string, error) {
		id := name + "-" + queue
		_, err := untilAnswered(ctx, func(ctx context.Context) (*gamelift.CreateGameSessionQueueOutput, error) {
			out, err := api[0].CreateGameSessionQueue(ctx, &gamelift.CreateGameSessionQueueInput{Name: &id, TimeoutInSeconds: &seconds})
			if isError[*types.ConflictException](err) { // an attempt without an answer has created it
				err = nil
			}
			return out, err
		})
		if err != nil {
			return "", err
		}
		_, err = untilAnswered(ctx, func(ctx context.Context) (*gamelift.StartGameSessionPlacementOutput, error) {
			return api[0].StartGameSessionPlacement(ctx, &gamelift.StartGameSessionPlacementInput{PlacementId: &id, GameSessionQueueName: &id, MaximumPlayerSessionCount: aws.Int32(2)})
		})
		return id, err
	}
	state := func(id string, at int) (types.GameSessionPlacementState, error) {
		out, err := untilAnswered(ctx, func(ctx context.Context) (*gamelift.DescribeGameSessionPlacementOutput, error) {
			return api[at].DescribeGameSessionPlacement(ctx, &gamelift.DescribeGameSessionPlacementInput{PlacementId: &id})
		})
		if err != nil {
			return "", err
		}
		return out.GameSessionPlacement.Status, nil
	}
	long, err := begin("long", 600)
	if err != nil {
		return err
	}
	if err := victim.setClock(ahead); err != nil {
		return err
	}
	defer func() {
		if err := victim.setClock(0); err != nil {
			x.finding("the clock of node %d is not right again: %v", victim.no+1, err)
		}
	}()
	well := x.c.others(victim)[0] // commands have the clock of this machine, and a node refuses those whose clock is far from its own
	if err := well.seesClock(ahead); err != nil {
		return err
	}
	short, err := begin("short", 10)
	if err != nil {
		return err
	}
	for _, next := range []*clusterNode{well, victim} { // the office moves between clocks that are apart
		if x.c.leader() == next {
			continue
		}
		if _, err := well.try("cluster", "hand-over", next.id); err != nil {
			return err
		}
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		at, err := state(short, r.IntN(len(api)))
		if err != nil {
			return err
		}
		if at == types.GameSessionPlacementStateTimedOut {
			break
		}
		if time.Now().After(end) {
			x.finding("with a clock %s ahead a placement with a time-out of 10 s is still %s", ahead, at)
			break
		}
	}
	if at, err := state(long, r.IntN(len(api))); err != nil || at != types.GameSessionPlacementStatePending {
		x.finding("with a clock %s ahead a placement with a time-out of 10 minutes is %s: %v", ahead, at, err)
	}
	return nil
}

// seesClock waits until the cluster's status shows that a clock is shifted, so that a patch without an effect does not look like a clock that did no harm.
func (x *clusterNode) seesClock(ahead time.Duration) error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		out, err := x.try("cluster", "status", "--json")
		var s struct {
			Members []struct {
				Clock int64 `json:"clock_off"` // against the leader's
			}
		}
		if err != nil || json.Unmarshal([]byte(out), &s) != nil {
			continue
		}
		for _, m := range s.Members {
			if off := (time.Duration(m.Clock) * time.Millisecond).Abs(); off > ahead.Abs()-time.Minute {
				return nil
			}
		}
	}
	return fmt.Errorf("node %d does not show a clock that is %s ahead", x.no+1, ahead)
}
