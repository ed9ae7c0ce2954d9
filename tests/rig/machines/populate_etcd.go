package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	core "k8s.io/api/core/v1"
	errs "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes/scheme"
)

const perTransaction = 50

// clone makes one node and one pod through the API, and the others from them in etcd, with the same managedFields.
func (l *load) clone(ctx context.Context) error {
	if l.nodes > 0 {
		if err := l.createNode(ctx, 0); err != nil {
			return err
		}
		if err := l.clones(ctx, "nodes", "/registry/minions/", loadNodeName(0), l.nodes, asNode); err != nil {
			return err
		}
	}
	if l.pods == 0 {
		return nil
	}
	if err := l.createPod(ctx, 0); err != nil && !errs.IsConflict(err) {
		return err
	}
	return l.clones(ctx, "pods", "/registry/pods/"+l.namespace+"/", loadPodName(0), l.pods, func(o runtime.Object, i int) {
		asPod(o.(*core.Pod), i, l.nodes)
	})
}

func asNode(o runtime.Object, i int) {
	node, fresh := o.(*core.Node), loadNode(i)
	node.Name, node.UID, node.Labels, node.Annotations = fresh.Name, uuid.NewUUID(), fresh.Labels, fresh.Annotations
	node.Spec.ProviderID, node.Status.Addresses = fresh.Spec.ProviderID, fresh.Status.Addresses
	node.Status.Conditions = conditions(true, "")
	node.Spec.Taints = fresh.Spec.Taints
	node.Status.NodeInfo = fresh.Status.NodeInfo
}

func asPod(pod *core.Pod, i, nodes int) {
	fresh := loadPod(i, nodes)
	pod.Name, pod.UID, pod.Labels, pod.Annotations = fresh.Name, uuid.NewUUID(), fresh.Labels, fresh.Annotations
	pod.Spec.NodeName, pod.Spec.Containers[0].Args = fresh.Spec.NodeName, fresh.Spec.Containers[0].Args
	pod.Status.PodIP, pod.Status.PodIPs = loadAddress(i), []core.PodIP{{IP: loadAddress(i)}}
	pod.Status.ContainerStatuses[0].ContainerID = "containerd://" + string(pod.UID)
}

// clones writes copies 1 to count-1 of an object below prefix.
func (l *load) clones(ctx context.Context, what, prefix, first string, count int, change func(runtime.Object, int)) error {
	original, err := l.stored(ctx, prefix+first)
	if err != nil {
		return err
	}
	codec := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	transactions := (count - 1 + perTransaction - 1) / perTransaction
	return l.each(ctx, fmt.Sprintf("%s by %d", what, perTransaction), transactions, func(t int) error {
		var puts []map[string]any
		for i := 1 + t*perTransaction; i < min(count, 1+(t+1)*perTransaction); i++ {
			object, kind, err := codec.Decode(original, nil, nil)
			if err != nil {
				return err
			}
			change(object, i)
			object.GetObjectKind().SetGroupVersionKind(*kind)
			name := object.(meta.Object).GetName()
			var value bytes.Buffer
			if err := codec.Encode(object, &value); err != nil {
				return err
			}
			puts = append(puts, map[string]any{"requestPut": map[string]any{
				"key": encoded([]byte(prefix + name)), "value": encoded(value.Bytes())}})
		}
		return l.ask(ctx, "/v3/kv/txn", map[string]any{"success": puts}, nil)
	})
}

func encoded(text []byte) string { return base64.StdEncoding.EncodeToString(text) }

// stored is an object as etcd has it.
func (l *load) stored(ctx context.Context, key string) ([]byte, error) {
	var answer struct {
		Kvs []struct {
			Value []byte `json:"value"`
		} `json:"kvs"`
	}
	err := l.ask(ctx, "/v3/kv/range", map[string]any{"key": encoded([]byte(key))}, &answer)
	if err == nil && len(answer.Kvs) != 1 {
		err = fmt.Errorf("etcd has no %s: is it this server's?", key)
	}
	if err != nil {
		return nil, err
	}
	return answer.Kvs[0].Value, nil
}

func (l *load) ask(ctx context.Context, path string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "POST", l.etcd+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != 200 {
		err = fmt.Errorf("etcd: %s: %s", response.Status, text)
	}
	if err != nil || answer == nil {
		return err
	}
	return json.Unmarshal(text, answer)
}
