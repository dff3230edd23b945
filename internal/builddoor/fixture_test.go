package builddoor

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/musterhq/muster/internal/archive/archivetest"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/journal/journaltest"
)

func openEngine(t *testing.T) *engine.Engine {
	t.Helper()
	disk, err := journaltest.NewMemory(1).Open()
	if err != nil {
		t.Fatal(err)
	}
	ended, err := archivetest.NewMemory(1).Open()
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(t.Context(), engine.Config{Journal: disk, Archive: ended, Cell: cell.DefaultConfig(), EndedLinger: time.Hour, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// s3Part is a part with its number and tag.
type s3Part struct {
	number *int32
	etag   *string
}

func completed(parts ...s3Part) *types.CompletedMultipartUpload {
	list := &types.CompletedMultipartUpload{}
	for _, p := range parts {
		list.Parts = append(list.Parts, types.CompletedPart{PartNumber: p.number, ETag: p.etag})
	}
	return list
}

func md5Of(content []byte) string { sum := md5.Sum(content); return hex.EncodeToString(sum[:]) }

// chunkSigner signs the chunks of a body.
type chunkSigner struct {
	secret string
	at     time.Time
	last   string
}

func (c *chunkSigner) sign(kind, rest string) string {
	day := c.at.Format("20060102")
	key := []byte("AWS4" + c.secret)
	for _, part := range []string{day, "us-east-1", "s3", "aws4_request"} {
		key = sum(key, part)
	}
	text := "AWS4-HMAC-SHA256-" + kind + "\n" + c.at.Format("20060102T150405Z") + "\n" + day + "/us-east-1/s3/aws4_request\n" + c.last + "\n" + rest
	c.last = hex.EncodeToString(sum(key, text))
	return c.last
}

func sum(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
