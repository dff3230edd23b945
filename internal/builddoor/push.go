package builddoor

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/buildfiles"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/objects"
)

// The requests of `muster build push`, which sends only the missing parts. They have the path and the credentials of
// an upload, and these parameters in the query.
const (
	MissingQuery = "muster-missing" // POST a manifest: returns the missing parts
	PartQuery    = "muster-part"    // PUT a part; the value is its digest
	CommitQuery  = "muster-commit"  // POST the manifest: makes these the files of the build; Accepted: ask again, the nodes of a cluster are still copying them
)

// Missing is the answer to a manifest.
type Missing struct {
	Parts []buildfiles.Digest `json:"parts"`
}

// manifest reads a manifest from the request.
func (u *upload) manifest() (*buildfiles.Manifest, error) {
	if !enter(u.readings) {
		return nil, slowDown()
	}
	defer func() { <-u.readings }()
	content, err := u.content(buildfiles.ManifestMax)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(content)
	if err != nil {
		return nil, err
	}
	m, err := buildfiles.ParseManifest(text)
	if rejected, ok := errors.AsType[*buildfiles.Rejected](err); ok {
		return nil, fail(http.StatusBadRequest, "InvalidRequest", "%s", rejected.Reason)
	}
	return m, err
}

func (u *upload) missingParts() error {
	m, err := u.manifest()
	if err != nil {
		return err
	}
	missing, err := u.Parts.Missing(u.r.Context(), m)
	if err != nil {
		return err
	}
	return u.answer(http.StatusOK, Missing{Parts: append([]buildfiles.Digest{}, missing...)}) // never null
}

func (u *upload) answer(status int, v any) error {
	u.w.Header().Set("Content-Type", "application/json")
	u.w.WriteHeader(status)
	_ = json.NewEncoder(u.w).Encode(v) // fails if the client has gone
	return nil
}

func (u *upload) pushPart() error {
	if !u.open {
		return u.taken()
	}
	digest, err := buildfiles.ParseDigest(u.query.Get(PartQuery))
	if err != nil {
		return fail(http.StatusBadRequest, "InvalidArgument", "%s: %v", PartQuery, err)
	}
	content, err := u.content(buildfiles.PartMax)
	if err != nil {
		return err
	}
	part, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	err = u.Parts.Put(u.r.Context(), digest, part)
	if wrong, ok := errors.AsType[*objects.WrongDigestError](err); ok {
		return fail(http.StatusBadRequest, "BadDigest", "%s", wrong)
	}
	if err == nil {
		u.w.WriteHeader(http.StatusOK)
	}
	return err
}

func (u *upload) commit() error {
	m, err := u.manifest()
	if err != nil {
		return err
	}
	done, err := u.commits.run(u.build, m, func(ctx context.Context) error {
		_, err := u.record(audit.With(ctx, u.by), u.build, m)
		return err
	})
	if !done {
		u.w.WriteHeader(http.StatusAccepted)
		return nil
	}
	if missing, ok := errors.AsType[*objects.MissingError](err); ok {
		return u.answer(http.StatusConflict, Missing{Parts: missing.Digests})
	}
	if domain.IsRefused(err, domain.Conflict) {
		return u.taken()
	}
	if err == nil {
		u.Log.Info("build pushed", "build", u.build, "files", len(m.Files), "bytes", m.Size())
		u.w.WriteHeader(http.StatusOK)
	}
	return err
}

// isClients reports whether the client caused an error: its connection broke, or it sent less than it announced.
func isClients(err error) bool {
	_, isNet := errors.AsType[net.Error](err)
	return isNet || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, http.ErrBodyReadAfterClose)
}
