package builddoor

import (
	"crypto/md5" //nolint:gosec // S3's tag of an object in parts is defined with it
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/audit"
)

// The limits of S3, which clients know.
const (
	partSizeMax   = 5 << 30
	partsMax      = 10_000
	completionMax = 4 << 20 // bytes of the list of parts
	multipartsMax = 4       // open multipart uploads of one build
)

// upload is one request for a build.
type upload struct {
	*Door
	w      http.ResponseWriter
	r      *http.Request
	query  url.Values
	signed *signed
	build  string
	open   bool // the build waits for its files
	by     audit.Origin
}

// Files of an upload. A crash leaves only complete files; objectFile lists those that form the object.
const (
	objectFile    = "object.json"
	multipartMark = "multipart-" // + upload id: the upload was created
	pieceMark     = "piece-"     // + upload id - number - tag
	wholeMark     = "whole-"     // + random
)

// object is a complete upload.
type object struct {
	Files []string `json:"files"` // in order
	ETag  string   `json:"etag"`  // without quotes
	Size  int64    `json:"size"`
}

func (d *Door) object(build string) (o object, ok bool, err error) {
	f, err := d.Objects.Staged(build, objectFile)
	if errors.Is(err, fs.ErrNotExist) {
		return o, false, nil
	}
	if err != nil {
		return o, false, err
	}
	defer f.Close()
	err = json.NewDecoder(f).Decode(&o)
	return o, err == nil, err
}

func quoted(etag string) string { return `"` + etag + `"` }

// content prepares to read the content of the request.
func (u *upload) content(limit int64) (*body, error) { return newBody(u.r, u.signed, limit) }

// putObject stores a zip that was sent in one request.
func (u *upload) putObject() error {
	if !u.open {
		return u.again()
	}
	content, err := u.content(partSizeMax)
	if err != nil {
		return err
	}
	name := wholeMark + randomID()
	size, err := u.Objects.Stage(u.build, name, content)
	if err != nil {
		return err
	}
	o := object{Files: []string{name}, ETag: content.etag(), Size: size}
	if err := u.complete(o); err != nil {
		_, removeErr := u.Objects.RemoveStaged(u.build, name)
		return errors.Join(err, removeErr)
	}
	u.w.Header().Set("ETag", quoted(o.ETag))
	u.w.WriteHeader(http.StatusOK)
	return nil
}

// again answers an upload for a build that has its files: if the client sends the same content, it probably lost the answer.
func (u *upload) again() error {
	content, err := u.content(partSizeMax)
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return err
	}
	was, ok, err := u.anyObject()
	if err != nil {
		return err
	}
	if !ok || was.ETag != content.etag() {
		return u.taken()
	}
	u.w.Header().Set("ETag", quoted(was.ETag))
	u.w.WriteHeader(http.StatusOK)
	return nil
}

func (u *upload) taken() error {
	return fail(http.StatusConflict, "InvalidObjectState", "build %s has its files already; create another build for other files", u.build)
}

// complete makes an upload the object of its build. The first one wins; repeating it is no error.
func (u *upload) complete(o object) error {
	u.completing.Lock()
	defer u.completing.Unlock()
	was, ok, err := u.object(u.build)
	switch {
	case err != nil:
		return err
	case ok && was.ETag == o.ETag && slices.Equal(was.Files, o.Files):
		return nil
	case ok && was.ETag == o.ETag:
		_, err := u.Objects.RemoveStaged(u.build, o.Files...)
		return err
	case ok:
		return u.taken()
	}
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if _, err := u.Objects.Stage(u.build, objectFile, strings.NewReader(string(text))); err != nil {
		return err
	}
	u.intake.add(waiting{u.build, u.by})
	return nil
}

// headObject describes the uploaded object.
func (u *upload) headObject() error {
	o, ok, err := u.anyObject()
	if err != nil {
		return err
	}
	if !ok {
		u.w.WriteHeader(http.StatusNotFound)
		return nil
	}
	u.w.Header().Set("ETag", quoted(o.ETag))
	u.w.Header().Set("Content-Length", strconv.FormatInt(o.Size, 10))
	u.w.WriteHeader(http.StatusOK)
	return nil
}

func randomID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // it never fails
	return hex.EncodeToString(id[:])
}

const s3Namespace = "http://s3.amazonaws.com/doc/2006-03-01/"

func (u *upload) createMultipart() error {
	if !u.open {
		return u.taken()
	}
	names, err := u.Objects.StagedFiles(u.build)
	if err != nil {
		return err
	}
	open := 0
	for _, name := range names {
		if strings.HasPrefix(name, multipartMark) {
			open++
		}
	}
	if open >= multipartsMax {
		return fail(http.StatusConflict, "OperationAborted", "%d uploads in parts are open for this build; the limit is %d: abort one", open, multipartsMax)
	}
	id := u.multipartID()
	if _, err := u.Objects.Stage(u.build, multipartMark+id, strings.NewReader("")); err != nil {
		return err
	}
	writeXML(u.w, http.StatusOK, struct {
		XMLName               xml.Name `xml:"InitiateMultipartUploadResult"`
		Namespace             string   `xml:"xmlns,attr"`
		Bucket, Key, UploadId string
	}{Namespace: s3Namespace, Bucket: Bucket, Key: u.build + suffix, UploadId: id})
	return nil
}

// piece is a part of a multipart upload.
type piece struct {
	number int
	etag   string
	name   string // of its file
}

// pieces returns the parts of a multipart upload in order, several of one number if the client sent it again.
func (u *upload) pieces() (id string, all []piece, err error) {
	id = u.query.Get("uploadId")
	names, err := u.Objects.StagedFiles(u.build)
	if err != nil {
		return id, nil, err
	}
	if !slices.Contains(names, multipartMark+id) {
		return id, nil, fail(http.StatusNotFound, "NoSuchUpload", "The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.")
	}
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, pieceMark+id+"-")
		number, etag, ok2 := strings.Cut(rest, "-")
		n, err := strconv.Atoi(number)
		if ok && ok2 && err == nil {
			all = append(all, piece{n, etag, name})
		}
	}
	return id, all, nil // file names are sorted, and numbers have five digits
}

func (u *upload) putPart() error {
	if !u.open {
		return u.taken()
	}
	number, err := strconv.Atoi(u.query.Get("partNumber"))
	if err != nil || number < 1 || number > partsMax {
		return fail(http.StatusBadRequest, "InvalidArgument", "partNumber %.20q: want 1 to %d", u.query.Get("partNumber"), partsMax)
	}
	id, before, err := u.pieces()
	if err != nil {
		return err
	}
	content, err := u.content(partSizeMax)
	if err != nil {
		return err
	}
	// The tag is known only at the end. It is part of the name, so that the directory is the list of parts.
	temporary := wholeMark + randomID()
	if _, err := u.Objects.Stage(u.build, temporary, content); err != nil {
		return err
	}
	etag := content.etag()
	name := fmt.Sprintf("%s%s-%05d-%s", pieceMark, id, number, etag)
	if err := u.Objects.RenameStaged(u.build, temporary, name); err != nil {
		return err
	}
	for _, p := range before {
		if p.number == number && p.name != name {
			if _, err := u.Objects.RemoveStaged(u.build, p.name); err != nil {
				return err
			}
		}
	}
	u.w.Header().Set("ETag", quoted(etag))
	u.w.WriteHeader(http.StatusOK)
	return nil
}

func (u *upload) listParts() error {
	id, all, err := u.pieces()
	if err != nil {
		return err
	}
	type part struct {
		PartNumber int
		ETag       string
	}
	listed := []part{}
	for _, p := range all {
		listed = append(listed, part{p.number, quoted(p.etag)})
	}
	writeXML(u.w, http.StatusOK, struct {
		XMLName               xml.Name `xml:"ListPartsResult"`
		Namespace             string   `xml:"xmlns,attr"`
		Bucket, Key, UploadId string
		IsTruncated           bool
		Part                  []part
	}{Namespace: s3Namespace, Bucket: Bucket, Key: u.build + suffix, UploadId: id, Part: listed})
	return nil
}

func (u *upload) completeMultipart() error {
	content, err := u.content(completionMax)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	var list struct {
		Part []struct {
			PartNumber int
			ETag       string
		}
	}
	if err := xml.Unmarshal(text, &list); err != nil || len(list.Part) == 0 || len(list.Part) > partsMax {
		return fail(http.StatusBadRequest, "MalformedXML", "the list of parts: want 1 to %d parts, each with PartNumber and ETag", partsMax)
	}
	_, all, err := u.pieces()
	if err != nil {
		return u.completedBefore(err)
	}
	o, tags, last := object{}, md5.New(), 0 //nolint:gosec // see the import
	for _, p := range list.Part {
		etag := strings.Trim(p.ETag, `"`)
		at := slices.IndexFunc(all, func(x piece) bool { return x.number == p.PartNumber && x.etag == etag })
		if at < 0 {
			return fail(http.StatusBadRequest, "InvalidPart", "part %d with the ETag %.40s was not uploaded", p.PartNumber, etag)
		}
		if p.PartNumber <= last {
			return fail(http.StatusBadRequest, "InvalidPartOrder", "part %d comes after part %d; want them in order", p.PartNumber, last)
		}
		last = p.PartNumber
		raw, _ := hex.DecodeString(etag) // valid, because this door made the name that contains it
		tags.Write(raw)
		o.Files = append(o.Files, all[at].name)
	}
	o.ETag = hex.EncodeToString(tags.Sum(nil)) + "-" + strconv.Itoa(len(list.Part))
	for _, name := range o.Files {
		size, err := u.Objects.StagedSize(u.build, name)
		if err != nil {
			return err
		}
		o.Size += size
	}
	if !u.open {
		return u.completedBefore(u.taken())
	}
	if err := u.complete(o); err != nil {
		return err
	}
	u.completed(o)
	return nil
}

// completedBefore answers a repeat of the request that completed the upload; its answer may have been lost.
func (u *upload) completedBefore(otherwise error) error {
	o, ok, err := u.object(u.build)
	if err != nil {
		return err
	}
	if !ok || len(o.Files) == 0 || !strings.HasPrefix(o.Files[0], pieceMark+u.query.Get("uploadId")+"-") {
		return otherwise
	}
	u.completed(o)
	return nil
}

func (u *upload) completed(o object) {
	writeXML(u.w, http.StatusOK, struct {
		XMLName                     xml.Name `xml:"CompleteMultipartUploadResult"`
		Namespace                   string   `xml:"xmlns,attr"`
		Location, Bucket, Key, ETag string
	}{Namespace: s3Namespace, Location: u.r.URL.Path, Bucket: Bucket, Key: u.build + suffix, ETag: quoted(o.ETag)})
}

func (u *upload) abortMultipart() error {
	id, all, err := u.pieces()
	if err != nil {
		return err
	}
	u.completing.Lock()
	defer u.completing.Unlock()
	o, ok, err := u.object(u.build)
	if err != nil {
		return err
	}
	if ok && slices.ContainsFunc(o.Files, func(name string) bool { return strings.HasPrefix(name, pieceMark+id+"-") }) {
		return u.taken()
	}
	names := []string{multipartMark + id}
	for _, p := range all {
		names = append(names, p.name)
	}
	if _, err := u.Objects.RemoveStaged(u.build, names...); err != nil {
		return err
	}
	u.w.WriteHeader(http.StatusNoContent)
	return nil
}
