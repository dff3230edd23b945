package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/musterhq/muster/internal/doctor"
	"github.com/musterhq/muster/internal/porttest"
	"github.com/musterhq/muster/internal/waittest"
)

// A rehearsal of a disaster: a backup of a single machine or of a follower, made during writes, is restored as a single machine, which then becomes a
// cluster. It contains everything that was acknowledged before the backup.
func TestBackupRehearsal(t *testing.T) {
	t.Parallel()
	t.Run("single", func(t *testing.T) {
		t.Parallel()
		s := startService(t, "--ended-linger", "1ms")
		rehearse(t, s, s)
	})
	t.Run("follower", func(t *testing.T) {
		t.Parallel()
		leader, follower := pairOfNodes(t)
		rehearse(t, leader, follower)
	})
}

// pairOfNodes starts a cluster of two nodes that archive ended records at once.
func pairOfNodes(t *testing.T) (leader, follower *service) {
	t.Helper()
	nodes := startNodes(t, 2, func(cluster ...string) *service { return newService(t, append(cluster, "--ended-linger", "1ms")...) })
	return nodes[0], nodes[1]
}

// rehearse writes to one node, and makes the backups at the same or another one.
func rehearse(t *testing.T, writes, at *service) {
	ctx := t.Context()
	id, secret := at.key("admin")
	_, err := writes.client.CreateGameSessionQueue(ctx, &gamelift.CreateGameSessionQueueInput{Name: aws.String("cup")})
	must(t, err)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // the load
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_, err := writes.client.CreateLocation(ctx, &gamelift.CreateLocationInput{LocationName: aws.String("custom-load")})
			if err == nil {
				_, err = writes.client.DeleteLocation(ctx, &gamelift.DeleteLocationInput{LocationName: aws.String("custom-load")})
			}
			if err != nil {
				t.Errorf("the load: %v", err)
				return
			}
		}
	}()
	file, made := "", 0
	waittest.Until(t, "a backup with archived placements", func() bool {
		placement := fmt.Sprint("placement-", made)
		_, err := writes.client.StartGameSessionPlacement(ctx, &gamelift.StartGameSessionPlacementInput{
			GameSessionQueueName: aws.String("cup"), MaximumPlayerSessionCount: aws.Int32(2), PlacementId: &placement,
		})
		must(t, err)
		_, err = writes.client.StopGameSessionPlacement(ctx, &gamelift.StopGameSessionPlacementInput{PlacementId: &placement})
		must(t, err)
		_, err = writes.client.CreateLocation(ctx, &gamelift.CreateLocationInput{LocationName: aws.String(fmt.Sprint("custom-", made))})
		must(t, err)
		made++
		file = filepath.Join(t.TempDir(), "backup")
		return strings.Contains(at.command("backup", "--data", at.data, "--to", file), "placements")
	})
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	if out, err := at.commandFails("backup", "--data", at.data, "--to", file); err == nil || !strings.Contains(out, "exists already") {
		t.Errorf("over an existing file: %v, %s", err, out)
	}
	close(stop)
	<-stopped

	if out := at.command("restore", "--verify", file); !strings.Contains(out, "The backup is intact") {
		t.Error(out)
	}
	restored := newService(t, "--dev=false")
	if out, err := at.commandFails("restore", file, "--data", at.data); err == nil || !strings.Contains(out, "not empty") {
		t.Errorf("over a directory in use: %v, %s", err, out)
	}
	restored.command("restore", file, "--data", restored.data)
	has := func() {
		t.Helper()
		restored.client = restored.apiWith(id, secret)
		for i := range made {
			wantLocation(t, fmt.Sprint("custom-", i), restored)
			out, err := restored.client.DescribeGameSessionPlacement(ctx, &gamelift.DescribeGameSessionPlacementInput{PlacementId: aws.String(fmt.Sprint("placement-", i))})
			must(t, err)
			if out.GameSessionPlacement.Status != types.GameSessionPlacementStateCancelled {
				t.Errorf("placement %d is %s", i, out.GameSessionPlacement.Status)
			}
		}
	}
	restored.start()
	has()
	restored.stop()
	restored.args = append(restored.args, "--cluster-listen", porttest.Free(t))
	restored.start()
	waittest.Until(t, "the new cluster to be ready", func() bool { return ready(t, restored) })
	has()
	createLocation(t, "custom-later", restored, restored)
}

// The same with a directory of backups: a full one, incremental ones from both kinds of nodes, and states between them, selected by number and by time.
func TestBackupsInADirectory(t *testing.T) {
	t.Parallel()
	t.Run("single", func(t *testing.T) {
		t.Parallel()
		s := startService(t, "--ended-linger", "1ms")
		rehearseDirectory(t, s, s, s)
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		leader, follower := pairOfNodes(t)
		rehearseDirectory(t, leader, leader, follower)
	})
}

// rehearseDirectory writes at one node while backups are made at others, kills the nodes, and restores.
func rehearseDirectory(t *testing.T, writes *service, at ...*service) {
	ctx := t.Context()
	id, secret := writes.key("admin")
	_, err := writes.client.CreateGameSessionQueue(ctx, &gamelift.CreateGameSessionQueueInput{Name: aws.String("cup")})
	must(t, err)
	dir := filepath.Join(t.TempDir(), "backups") + "/"
	var told atomic.Int64 // number of placements and locations that were acknowledged
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := told.Load(); ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			placement := fmt.Sprint("placement-", n)
			_, err := writes.client.StartGameSessionPlacement(ctx, &gamelift.StartGameSessionPlacementInput{
				GameSessionQueueName: aws.String("cup"), MaximumPlayerSessionCount: aws.Int32(2), PlacementId: &placement,
			})
			if err == nil {
				_, err = writes.client.StopGameSessionPlacement(ctx, &gamelift.StopGameSessionPlacementInput{PlacementId: &placement})
			}
			if err == nil && n%20 == 0 {
				_, err = writes.client.CreateLocation(ctx, &gamelift.CreateLocationInput{LocationName: aws.String(fmt.Sprint("custom-", n))})
			}
			if err != nil {
				t.Errorf("the load: %v", err)
				return
			}
			told.Store(n + 1)
		}
	}()
	more := func(n int64) {
		t.Helper()
		want := told.Load() + n
		waittest.Until(t, "the load to go on", func() bool { return told.Load() >= want || t.Failed() })
	}
	type moment struct {
		had   int64 // that the client had been told of before
		at    string
		later int64 // one that was made afterwards
	}
	var moments []moment
	note := func() {
		m := moment{had: told.Load(), at: time.Now().UTC().Format(time.RFC3339Nano)}
		m.later = told.Load() + 5 // behind the one under way, and in a later millisecond
		moments = append(moments, m)
	}
	more(50)
	for i := range 4 {
		if i > 0 {
			more(30)
			if i == 1 { // the backup before has no generation of the secret that is in use from now on
				writes.command("secret", "rotate", "--data", writes.data)
			}
			note()
			more(30)
		}
		node := at[i%len(at)]
		before := told.Load()
		out := node.command("backup", "--data", node.data, "--to", dir)
		moments = append(moments, moment{had: before})
		if entries := strings.Contains(out, "each of which you can restore"); entries != (i > 0) {
			t.Errorf("backup %d: %s", i, out)
		}
	}
	close(stop)
	<-stopped
	for _, node := range at { // the disaster
		node.kill()
	}
	last := moments[len(moments)-1]
	if out := writes.command("restore", "--verify", dir); !strings.Contains(out, "The backup is intact") || !strings.Contains(out, "replayed") {
		t.Error(out)
	}
	list := writes.command("backup", "list", dir)
	found := regexp.MustCompile(`--at takes the entries (\d+) to (\d+)\n`).FindStringSubmatch(list)
	if found == nil {
		t.Fatalf("no range of entries in %s", list)
	}
	has := func(s *service, m moment) {
		t.Helper()
		s.client = s.apiWith(id, secret)
		for n := range m.had {
			if n%20 == 0 {
				wantLocation(t, fmt.Sprint("custom-", n), s)
			}
			out, err := s.client.DescribeGameSessionPlacement(ctx, &gamelift.DescribeGameSessionPlacementInput{PlacementId: aws.String(fmt.Sprint("placement-", n))})
			must(t, err)
			if out.GameSessionPlacement.Status != types.GameSessionPlacementStateCancelled {
				t.Errorf("placement %d is %s", n, out.GameSessionPlacement.Status)
			}
		}
	}
	restored := newService(t, "--dev=false")
	restored.command("restore", dir, "--data", restored.data)
	restored.start()
	has(restored, last)
	if out, err := restored.remote(id, secret, "audit", "verify"); err != nil || !strings.Contains(out, "the audit log is intact") {
		t.Errorf("the audit log of the restored service: %v, %s", err, out)
	}
	restored.stop()
	restored.args = append(restored.args, "--cluster-listen", porttest.Free(t)) // a new cluster
	restored.start()
	waittest.Until(t, "the new cluster to be ready", func() bool { return ready(t, restored) })
	has(restored, last)
	restored.stop()

	between := moments[1]
	then := newService(t, "--dev=false")
	then.command("restore", dir, "--data", then.data, "--at", between.at)
	then.start()
	has(then, between)
	_, err = then.client.DescribeGameSessionPlacement(ctx, &gamelift.DescribeGameSessionPlacementInput{PlacementId: aws.String(fmt.Sprint("placement-", between.later))})
	if _, ok := errors.AsType[*types.NotFoundException](err); !ok {
		t.Errorf("a placement that came later: %v", err)
	}
	first, err := strconv.Atoi(found[1])
	must(t, err)
	then = newService(t)
	out := then.command("restore", dir, "--data", then.data, "--at", strconv.Itoa(first+5))
	if !strings.Contains(out, fmt.Sprintf("entry %d of", first+5)) {
		t.Error(out)
	}
	then.start()
	if out, err := then.commandFails("restore", dir, "--data", t.TempDir(), "--at", "1000000000"); err == nil || !strings.Contains(out, found[1]+" to "+found[2]) {
		t.Errorf("an entry that no backup has: %v, %s", err, out)
	}
}

// A backup whose command or service is killed does not exist. A concurrent backup is refused, and the next one succeeds.
func TestBackupsThatAreKilled(t *testing.T) {
	t.Parallel()
	s := startService(t)
	dir := filepath.Join(t.TempDir(), "backups") + "/"
	s.command("backup", "--data", s.data, "--to", dir)
	slow := func() (cmd *exec.Cmd, exited chan error) {
		for { // a backup that begins while the other command makes one is refused
			cmd, exited = exec.Command(musterBinary, "backup", "--data", s.data, "--to", dir, "--full", "--rate", "16B"), make(chan error, 1) // longer than the test
			cmd.Env = cleanEnvironment("HOME=" + t.TempDir())
			must(t, cmd.Start())
			go func() { exited <- cmd.Wait() }()
			refused := false
			waittest.Until(t, "the backup to be made", func() bool {
				out, err := s.commandFails("backup", "--data", s.data, "--to", dir)
				refused = err != nil && strings.Contains(out, "another backup is in progress: it began at 20") && strings.Contains(out, " and is written to "+filepath.Clean(dir))
				return refused || len(exited) > 0
			})
			if refused && len(exited) == 0 {
				return cmd, exited
			}
		}
	}
	count := func() int { return strings.Count(s.command("backup", "list", dir), "Z-") }
	cmd, exited := slow()
	made := count() // those that were made before the slow one began
	must(t, cmd.Process.Kill())
	<-exited
	if now := count(); now != made {
		t.Errorf("%d backups, want %d", now, made)
	}
	waittest.Until(t, "the next backup", func() bool {
		_, err := s.commandFails("backup", "--data", s.data, "--to", dir)
		return err == nil
	})
	_, exited = slow()
	made = count()
	s.kill()
	if err := <-exited; err == nil {
		t.Error("the backup of a killed service was made")
	}
	if now := count(); now != made {
		t.Errorf("%d backups, want %d", now, made)
	}
	s.start()
	manifests, err := filepath.Glob(filepath.Join(dir, "backups", "*.json"))
	must(t, err)
	for _, name := range manifests { // young ones stay
		must(t, os.Chtimes(name, time.Now().Add(-time.Hour), time.Now().Add(-time.Hour)))
	}
	if out := s.command("backup", "--data", s.data, "--to", dir, "--keep", "1"); !strings.Contains(out, "removed") || count() != 2 {
		t.Errorf("%d backups: %s", count(), out)
	}
	if out := s.command("restore", "--verify", dir); !strings.Contains(out, "The backup is intact") {
		t.Error(out)
	}
}

// Backups in a bucket: the command finds the endpoint and the credentials in the same places as AWS tools.
func TestBackupsInABucket(t *testing.T) {
	t.Parallel()
	s := startService(t)
	backend := s3mem.New()
	must(t, backend.CreateBucket("studio"))
	var requests atomic.Int64
	store := gofakes3.New(backend).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1)%9 == 5 { // the network
			panic(http.ErrAbortHandler)
		}
		store.ServeHTTP(w, r)
	}))
	defer server.Close()
	muster := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(musterBinary, args...)
		cmd.Env = cleanEnvironment("HOME="+t.TempDir(), "AWS_ENDPOINT_URL_S3="+server.URL, "AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=secret")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("muster %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	const place = "s3://studio/muster/backups"
	createLocation(t, "custom-one", s, s)
	muster("backup", "--data", s.data, "--to", place)
	createLocation(t, "custom-two", s, s)
	if out := muster("backup", "--data", s.data, "--to", place, "--keep", "5"); !strings.Contains(out, "each of which you can restore") {
		t.Error(out)
	}
	if out := muster("backup", "list", place); strings.Count(out, "Z-") != 2 {
		t.Error(out)
	}
	if out := muster("restore", "--verify", place); !strings.Contains(out, "The backup is intact") {
		t.Error(out)
	}
	restored := newService(t)
	muster("restore", place, "--data", restored.data)
	restored.start()
	wantLocation(t, "custom-one", restored)
	wantLocation(t, "custom-two", restored)
}

// A damaged backup is refused, and so is a command without a service.
func TestBackupThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	s := startService(t)
	file := filepath.Join(t.TempDir(), "backup")
	s.command("backup", "--data", s.data, "--to", file)
	content, err := os.ReadFile(file)
	must(t, err)
	content[len(content)-20] ^= 1
	must(t, os.WriteFile(file, content, 0o600))
	if out, err := s.commandFails("restore", "--verify", file); err == nil || !strings.Contains(out, "damaged or incomplete backup") {
		t.Errorf("a damaged backup: %v, %s", err, out)
	}
	s.stop()
	if out, err := s.commandFails("backup", "--data", s.data, "--to", file+"2"); err == nil || !strings.Contains(out, "needs the running service") {
		t.Errorf("without a service: %v, %s", err, out)
	}
}

// The service knows the age of its last backup, at every node and after a start, and reports if it is older than expected.
func TestLastBackupIsKnown(t *testing.T) {
	t.Parallel()
	s := newService(t, "--dev=false", "--backup-age-max", "1ms")
	s.key("admin")
	s.start()
	examined := func() string {
		out, _ := s.commandFails("doctor", "--data", s.data, "--listen", s.address, "--backup-age-max", "1ms")
		return out
	}
	if out := examined(); !strings.Contains(out, "No backup of this installation is known.") || !strings.Contains(out, "secret: generations in use: 1") {
		t.Errorf("before the first backup: %s", out)
	}
	file := filepath.Join(t.TempDir(), "monday")
	s.command("backup", "--data", s.data, "--to", file)
	s.kill()
	s.start()
	if out := examined(); !strings.Contains(out, "The last backup is from ") || !strings.Contains(out, " old, in "+file) {
		t.Errorf("after a backup and a start: %s", out)
	}

	leader, follower := pairOfNodes(t)
	const metric = "muster_backup_last_success_timestamp_seconds "
	if _, _, page := sent(t, "GET", leader.url()+"/metrics", ""); strings.Contains(page, "\n"+metric) {
		t.Errorf("before the first backup: %s", page)
	}
	dir := filepath.Join(t.TempDir(), "backups") + "/"
	follower.command("backup", "--data", follower.data, "--to", dir)
	for _, at := range []*service{leader, follower} {
		waittest.Until(t, "the node to know the backup", func() bool {
			_, _, page := sent(t, "GET", at.url()+"/metrics", "")
			return strings.Contains(page, "\n"+metric)
		})
		found, _ := examine(t, at)
		if f := found["backups"]; f.Level != doctor.OK || !strings.Contains(f.Found, strings.TrimSuffix(dir, "/")) {
			t.Errorf("%s: %+v", at.address, f)
		}
	}
}

// After the machine was rolled back to a snapshot, the next backup in a directory builds on none from after the snapshot.
func TestBackupsAfterARollback(t *testing.T) {
	t.Parallel()
	s := startService(t)
	locations := 0
	work := func(n int) {
		t.Helper()
		for range n {
			locations++
			_, err := s.client.CreateLocation(t.Context(), &gamelift.CreateLocationInput{LocationName: aws.String(fmt.Sprint("custom-", locations))})
			must(t, err)
		}
	}
	dir := filepath.Join(t.TempDir(), "backups") + "/"
	save := func() string {
		t.Helper()
		return s.command("backup", "--data", s.data, "--to", dir)
	}
	const rolledBack = "was rolled back"
	work(5)
	save()
	if out := save(); strings.Contains(out, rolledBack) || !strings.Contains(out, "journal    entries") {
		t.Errorf("the second backup: %s", out)
	}
	s.stop()
	snapshot := filepath.Join(t.TempDir(), "snapshot")
	must(t, exec.Command("cp", "-a", s.data, snapshot).Run())
	s.start()
	work(3)
	save()
	s.stop()
	must(t, os.RemoveAll(s.data))
	must(t, exec.Command("cp", "-a", snapshot, s.data).Run())
	s.start()
	work(30) // the next backup has more entries than the last one
	if out := save(); !strings.Contains(out, rolledBack) {
		t.Errorf("the first backup after the rollback: %s", out)
	}
	work(3)
	if out := save(); strings.Contains(out, rolledBack) || !strings.Contains(out, "journal    entries") {
		t.Errorf("the second backup after the rollback: %s", out)
	}
	if out := s.command("restore", "--verify", dir); !strings.Contains(out, "The backup is intact.") {
		t.Errorf("verified: %s", out)
	}
}
