package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"io"
	"os"
	"strings"
	"time"
)

// archive makes the target's .tar.gz, or .zip for Windows, with one directory in it.
func (t *target) archive() (string, error) {
	list, err := t.documents()
	if err != nil {
		return "", err
	}
	program := file{name: "muster", mode: 0o755}
	if t.os == "windows" {
		program.name += ".exe"
	}
	if program.content, err = os.ReadFile(t.binary); err != nil {
		return "", err
	}
	list = append(list, program)
	for i := range list {
		list[i].name = t.name() + "/" + list[i].name
	}
	if t.os == "windows" {
		return t.create(t.name()+".zip", func(w io.Writer) error { return writeZip(w, sorted(list), t.time) })
	}
	return t.create(t.name()+".tar.gz", func(w io.Writer) error { return writeTarGz(w, sorted(list), t.time) })
}

// level is the compression level: higher ones take several times as long and save a hundredth of the size.
const level = gzip.DefaultCompression

func writeTarGz(w io.Writer, list []file, at time.Time) error {
	zipped, err := gzip.NewWriterLevel(w, level) // its header has neither a name nor a time
	if err != nil {
		return err
	}
	if err := writeTar(zipped, list, at); err != nil {
		return err
	}
	return zipped.Close()
}

func writeTar(w io.Writer, list []file, at time.Time) error {
	archive := tar.NewWriter(w)
	for _, f := range list {
		mode := int64(f.mode.Perm())
		if f.mode&os.ModeSticky != 0 {
			mode |= 0o1000
		}
		h := &tar.Header{Format: tar.FormatUSTAR, Name: f.name, Mode: mode, Size: int64(len(f.content)), ModTime: at, Uid: f.uid, Gid: f.uid, Typeflag: tar.TypeReg}
		if f.content == nil {
			h.Typeflag, h.Name = tar.TypeDir, strings.TrimSuffix(f.name, "/")+"/"
		}
		if err := archive.WriteHeader(h); err != nil {
			return err
		}
		if _, err := archive.Write(f.content); err != nil {
			return err
		}
	}
	return archive.Close()
}

func writeZip(w io.Writer, list []file, at time.Time) error {
	archive := zip.NewWriter(w)
	for _, f := range list {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		h.SetMode(f.mode)
		out, err := archive.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := out.Write(f.content); err != nil {
			return err
		}
	}
	return archive.Close()
}
