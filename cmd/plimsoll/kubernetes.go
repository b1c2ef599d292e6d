package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	_ "embed"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"path"
	"strconv"
	"text/template"

	"github.com/spf13/cobra"

	"plimsoll/internal/input"
	"plimsoll/internal/load"
	"plimsoll/internal/model"
)

//go:embed load-kubernetes.yaml
var kubernetesText string

// kubernetesFlags ask for a manifest in place of a load.
type kubernetesFlags struct {
	workers int
	image   string
}

func (f *kubernetesFlags) add(c *cobra.Command) {
	c.Flags().IntVar(&f.workers, "kubernetes", 0, "send nothing, and print a manifest that has `N` pods of a Kubernetes cluster play this load together, as --from does; it has a key and what is sent (docs/elsewhere.md)")
	c.Flags().StringVar(&f.image, "image", "plimsoll", "with --kubernetes: the `IMAGE` of the pods, which packaging/Dockerfile builds")
}

// check says what is wrong with the flags.
func (f *kubernetesFlags) check(c *cobra.Command, out *loadOutput, from []string) error {
	asked := c.Flags().Changed
	no := func(text string) error { return usage(c.CommandPath(), "%s", text) }
	switch {
	case !asked("kubernetes") && asked("image"):
		return no("--image is for --kubernetes")
	case asked("kubernetes") && f.workers < 1:
		return no(fmt.Sprintf("--kubernetes %d: want the number of pods, at least 1", f.workers))
	case asked("kubernetes") && len(from) > 0:
		return no("--kubernetes and --from both say from where; leave out one of both")
	case asked("kubernetes") && (len(out.files) > 0 || out.gate.junit != "" || out.gate.github):
		return no("--kubernetes: -o, --junit and --github write where a pod's files end with it; --json prints all to its log")
	case asked("kubernetes") && asked("engine") && c.Flag("engine").Value.String() == "io_uring":
		return no("--kubernetes: containers forbid io_uring; leave out --engine")
	case asked("kubernetes") && (asked("source") || asked("unix-socket")):
		return no("--kubernetes: --source and --unix-socket name what one machine has; leave out one of both")
	}
	return nil
}

// manifest prints what has pods play a plan.
func (f *kubernetesFlags) manifest(c *cobra.Command, w *world, plan model.LoadPlan, out *loadOutput, may bool) error {
	no := func(err error) error { return usage(c.CommandPath(), "--kubernetes: %v", err) }
	if !c.Flags().Changed("threads") {
		plan.Threads = 0 // each pod has as many as its node has CPUs
	}
	for k := range f.workers {
		plan.From = append(plan.From, fmt.Sprintf("w%d=pod:%d", k, k))
	}
	first := plan
	first.Part = &model.Part{All: f.workers}
	if err := load.Check(first); err != nil {
		return no(err)
	}
	files, err := podFiles(plan)
	if err != nil {
		return no(err)
	}
	lead := append([]string{leadName, podsDir}, out.words()...)
	if may {
		lead = append(lead, "--yes-i-may")
	}
	worker := []string{engineName, podName, podsService + ":" + strconv.Itoa(podsPort), podsDir}
	t, err := template.New("").Funcs(template.FuncMap{"quote": strconv.QuoteToASCII}).Parse(kubernetesText) // YAML knows Go's escapes
	if err != nil {
		return err
	}
	var doc bytes.Buffer
	if err := t.Execute(&doc, map[string]any{"Workers": f.workers, "Image": f.image, "Files": files, "Lead": lead, "Worker": worker, "Port": podsPort, "Dir": podsDir}); err != nil {
		return err
	}
	_, err = w.stdout.Write(doc.Bytes())
	return err
}

// podFiles are the files that all pods of a load have: its plan, their key, and what the plan names.
func podFiles(plan model.LoadPlan) (files map[string]string, err error) {
	files = map[string]string{}
	if plan.TLS != nil {
		there := *plan.TLS
		plan.TLS = &there
		for name, file := range map[string]*string{"ca.pem": &there.CACert, "client.crt": &there.Cert, "client.key": &there.Key} {
			if *file == "" {
				continue
			}
			text, err := input.Read(*file, input.MaxPEM)
			if err != nil {
				return nil, err
			}
			files[name], *file = string(text), path.Join(podsDir, name)
		}
	}
	text, err := json.Marshal(plan)
	if err != nil {
		return nil, err
	}
	files[planFile] = string(text)
	if files[certFile], files[keyFile], err = newPodKey(); err != nil {
		return nil, err
	}
	size := 0
	for _, text := range files {
		size += len(text)
	}
	if size > maxSecret {
		return nil, fmt.Errorf("what is sent takes %d bytes, and a Secret has room for %d: take fewer --targets or --vars", size, maxSecret)
	}
	return files, nil
}

// newPodKey makes a key, and a certificate of nobody that shows it.
func newPodKey() (cert, key string, err error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1)}
	shown, err := x509.CreateCertificate(rand.Reader, form, form, k.Public(), k)
	raw, err2 := x509.MarshalPKCS8PrivateKey(k)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: shown})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})), errors.Join(err, err2)
}
