package localdoor

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/backup"
)

const (
	streamPath = "/v1/backup/stream"
	exportPath = "/v1/export"
)

// streamPatience is how long the reader of a stream may stall. The frozen state stays in memory meanwhile.
const streamPatience = 5 * time.Minute

// StreamRequest requests a backup that the caller stores itself.
type StreamRequest struct {
	To    string        `json:"to"`              // where the caller stores it, for the log and the audit log
	Since *backup.Since `json:"since,omitempty"` // the backup that the caller already has; nil: none
	Rate  int64         `json:"rate"`            // maximum bytes per second; 0: no limit
	Alone bool          `json:"alone,omitempty"` // no later backup builds on this one, so nothing is kept for it

	User   string `json:"user"`
	Reason string `json:"reason,omitempty"`
}

// ExportRequest requests ended records.
type ExportRequest struct {
	To    string   `json:"to"`              // where the caller stores it, for the log and the audit log
	Kinds []string `json:"kinds,omitempty"` // none: all
	From  int64    `json:"from"`            // records that ended then or later, Unix milliseconds
	Until int64    `json:"until,omitempty"` // and before; 0: as far as there are any
	Rate  int64    `json:"rate"`            // maximum bytes per second; 0: no limit

	User   string `json:"user"`
	Reason string `json:"reason,omitempty"`
}

func (d *Door) streamBackup(ctx context.Context, to io.Writer, body []byte) error {
	in, err := read[StreamRequest](body)
	if err != nil {
		return err
	}
	_, err = d.config.Stream(ctx, to, in)
	return err
}

func (d *Door) streamExport(ctx context.Context, to io.Writer, body []byte) error {
	in, err := read[ExportRequest](body)
	if err != nil {
		return err
	}
	return d.config.Export(ctx, to, in)
}

// stream answers with the output of do. The proof is in a trailer; if the answer cannot be completed, the connection is closed.
func (d *Door) stream(operation string, do func(ctx context.Context, to io.Writer, body []byte) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, by, ok := d.proven(w, r)
		if !ok {
			return
		}
		c := http.NewResponseController(w)
		_ = c.SetReadDeadline(time.Time{}) // fails if the connection is closed
		in, err := read[struct{ To, User, Reason string }](body)
		ctx, refused := recorded(r, byUser(r, in.User), operation, in.Reason)
		if err == nil {
			err = refused
		}
		out := &streamWriter{ctx: r.Context(), to: w, controller: c, sum: sha256.New()}
		defer context.AfterFunc(r.Context(), func() { _ = c.SetWriteDeadline(time.Now()) })() // ends a write that waits for the reader
		if err == nil {
			d.config.Log.Info("the command line asks for data", "operation", operation, "to", in.To, "principal", Principal(in.User))
			err = do(audit.Without(ctx), out, body)
			d.config.Audit.Refused(ctx, err)
		}
		switch {
		case err == nil:
			d.config.Audit.Record(ctx, operation, in.To)
			w.Header().Set(proofHeader, streamProof(by.key, by.nonce, [sha256.Size]byte(out.sum.Sum(nil))))
		case out.begun:
			panic(http.ErrAbortHandler)
		default:
			status, problem := d.problem(r, err)
			d.answer(w, by, status, problem)
		}
	}
}

// streamWriter ends a stream whose reader stalls, or whose context ends.
type streamWriter struct {
	ctx        context.Context
	to         http.ResponseWriter
	controller *http.ResponseController
	sum        hash.Hash
	begun      bool
}

func (s *streamWriter) Write(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	if !s.begun {
		s.begun = true
		s.to.Header().Set("Content-Type", "application/octet-stream")
		s.to.Header().Set("Cache-Control", "no-store")
		s.to.Header().Set("Trailer", proofHeader)
	}
	_ = s.controller.SetWriteDeadline(time.Now().Add(streamPatience)) // fails if the connection is closed
	s.sum.Write(p)
	return s.to.Write(p)
}

// Stream makes the service send a backup, for backup.Copy. The content is authenticated only once it was read up to io.EOF.
func (c *Client) Stream(ctx context.Context, in StreamRequest) (io.ReadCloser, error) {
	in.User, in.Reason = c.user, c.Reason
	return c.stream(ctx, streamPath, in)
}

// Export makes the service send ended records, for export.Read, in the same way as Stream.
func (c *Client) Export(ctx context.Context, in ExportRequest) (io.ReadCloser, error) {
	in.User, in.Reason = c.user, c.Reason
	return c.stream(ctx, exportPath, in)
}

func (c *Client) stream(ctx context.Context, path string, in any) (io.ReadCloser, error) {
	if err := c.awake(ctx); err != nil {
		return nil, err
	}
	patient := *c
	patient.http.Timeout = 0
	answer, nonce, err := patient.send(ctx, path, in)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK || answer.Header.Get(proofHeader) != "" {
		defer answer.Body.Close()
		return nil, c.readAnswer(answer, nonce, &struct{}{})
	}
	return &streamReader{answer: answer, sum: sha256.New(), want: func(sum [sha256.Size]byte) string { return streamProof(c.secret.LocalKey(), nonce, sum) }}, nil
}

type streamReader struct {
	answer *http.Response
	sum    hash.Hash
	want   func([sha256.Size]byte) string
}

func (s *streamReader) Read(p []byte) (n int, err error) {
	n, err = s.answer.Body.Read(p)
	s.sum.Write(p[:n])
	switch {
	case err == io.EOF && !equal(s.answer.Trailer.Get(proofHeader), s.want([sha256.Size]byte(s.sum.Sum(nil)))):
		err = errors.New("the answer was not sent by the service of this data directory, or is incomplete")
	case err != nil && err != io.EOF:
		err = fmt.Errorf("the service did not send everything; its log says why: %w", err)
	}
	return n, err
}

func (s *streamReader) Close() error { return s.answer.Body.Close() }
