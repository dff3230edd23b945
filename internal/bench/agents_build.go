package bench

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/buildfetch"
	"github.com/musterhq/muster/internal/buildfiles"
)

// buildFiles is the number of files in the build, all of the same size.
const buildFiles = 16

// buildToHosts measures the delivery of a build to several hosts at once, and as a comparison copies the same bytes to as many directories.
func (b *bench) buildToHosts(ctx context.Context) error {
	size := cmp.Or(b.options.Build, b.sizes.agentBuild)
	s, c, _, err := b.serveHosts(ctx, "builds", "--builds-max", fmt.Sprintf("%dB", 4*size+(1<<30)))
	if err != nil {
		return err
	}
	defer s.kill()
	defer c.close()
	files, err := b.freshDir("game")
	if err != nil {
		return err
	}
	if err := writeGame(files, size); err != nil {
		return err
	}
	fleet, err := b.builtFleet(ctx, s, c, files)
	if err != nil {
		return err
	}
	n := b.sizes.agentBuilders
	all, err := b.newHosts(ctx, s, "", n)
	if err != nil {
		return err
	}
	defer all.close()
	if err := all.waitConnected(ctx, n); err != nil {
		return err
	}
	if _, err := callJSON[struct{}](c, "UpdateFleetCapacity", map[string]any{
		"FleetId": fleet, "Location": location, "DesiredInstances": n, "MaxSize": n,
	}); err != nil {
		return err
	}
	var told []builtHost
	for len(told) < n {
		select {
		case x := <-all.builds:
			told = append(told, x)
		case <-time.After(startWait):
			return fmt.Errorf("%d of %d hosts were told to fetch the build", len(told), n)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	copies, err := b.freshDir("copies")
	if err != nil {
		return err
	}
	plain, err := timed(func() error {
		return inParallel(n, n, func(i int) error { return copyDurably(files, filepath.Join(copies, fmt.Sprint(i))) })
	})
	if err := errors.Join(err, os.RemoveAll(copies)); err != nil {
		return err
	}
	fetched, err := b.freshDir("fetched")
	if err != nil {
		return err
	}
	processors := machineTime()
	took, err := timed(func() error {
		return inParallel(n, n, func(i int) error {
			digest, err := buildfiles.ParseDigest(told[i].build.Digest)
			if err == nil {
				_, err = (&buildfetch.Builds{Dir: filepath.Join(fetched, fmt.Sprint(i))}).Fetch(ctx, told[i].build.URL, digest)
			}
			return err
		})
	})
	processors = machineTime() - processors
	if err := errors.Join(err, os.RemoveAll(fetched)); err != nil {
		return err
	}
	speed := func(d time.Duration) float64 { return float64(size) * float64(n) / (1 << 20) / d.Seconds() }
	b.progress("    processors meanwhile: %.1f, of the whole machine", processors.Seconds()/took.Seconds())
	b.table.addFact(fmt.Sprintf("a build of %s to %d hosts at once, durable, in all", megabytes(size), n), "that of copies", "%.0f MiB a second (%.1f s)", speed(took), took.Seconds())
	b.table.addFact(fmt.Sprintf("… the same files copied %d times at once, durable", n), "–", "%.0f MiB a second (%.1f s)", speed(plain), plain.Seconds())
	b.table.addFact("… time of the build beside that of the copies", "–", "%.2f", took.Seconds()/plain.Seconds())
	return nil
}

func timed(f func() error) (time.Duration, error) {
	began := time.Now()
	err := f()
	return time.Since(began), err
}

// writeGame writes files that cannot be compressed and have nothing in common.
func writeGame(dir string, size int64) error {
	source := rand.NewChaCha8([32]byte{1})
	for i := range buildFiles {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("server-%d", i)), os.O_CREATE|os.O_WRONLY, 0o755)
		if err != nil {
			return err
		}
		_, err = io.CopyN(f, source, size/buildFiles)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

var buildID = regexp.MustCompile(`build-[0-9a-f-]{36}`)

// builtFleet pushes a directory as a build, and makes a fleet with it.
func (b *bench) builtFleet(ctx context.Context, s *server, c *conn, files string) (string, error) {
	push := exec.CommandContext(ctx, b.options.Binary, "build", "push", files, "--name", "bench", "--server", "http://"+s.addr)
	push.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MUSTER_") || strings.HasPrefix(v, "AWS_") }),
		"AWS_ACCESS_KEY_ID="+s.key.ID, "AWS_SECRET_ACCESS_KEY="+s.key.Secret)
	var problems bytes.Buffer
	push.Stderr = &problems
	out, err := push.Output()
	id := buildID.FindString(string(out))
	if err != nil || id == "" {
		return "", fmt.Errorf("push the build: %v\n%s%s", err, out, &problems)
	}
	made, err := callJSON[struct{ FleetAttributes struct{ FleetId string } }](c, "CreateFleet", map[string]any{
		"Name": "built", "BuildId": id, "Locations": []map[string]string{{"Location": location}}, "EC2InstanceType": "c5.large",
		"RuntimeConfiguration": map[string]any{"ServerProcesses": []map[string]any{{"LaunchPath": "/local/game/server-0", "ConcurrentExecutions": 1}}},
	})
	return made.FleetAttributes.FleetId, err
}

// copyDurably copies the files of a directory and waits until they are on the disk.
func copyDurably(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := copyFile(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}
