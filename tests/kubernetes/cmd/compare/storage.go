package main

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const driver = "csi.example.com"

func class(name, provisioner string, mode storagev1.VolumeBindingMode) *storagev1.StorageClass {
	return &storagev1.StorageClass{TypeMeta: metav1.TypeMeta{Kind: "StorageClass", APIVersion: "storage.k8s.io/v1"},
		ObjectMeta: meta("", name), Provisioner: provisioner, VolumeBindingMode: &mode}
}

func (d dice) classes() []*storagev1.StorageClass {
	out := []*storagev1.StorageClass{
		class("now", driver, storagev1.VolumeBindingImmediate),
		class("late", driver, storagev1.VolumeBindingWaitForFirstConsumer),
		class("local", "kubernetes.io/no-provisioner", storagev1.VolumeBindingWaitForFirstConsumer),
	}
	if d.chance(1, 2) {
		out[1].AllowedTopologies = []v1.TopologySelectorTerm{{MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{
			{Key: v1.LabelTopologyZone, Values: []string{"a", d.pick("b", "c")}}}}}
	}
	return out
}

func (d dice) accessMode() v1.PersistentVolumeAccessMode {
	return v1.PersistentVolumeAccessMode(d.pick("ReadWriteOnce", "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"))
}

func (d dice) volumeAffinity() *v1.VolumeNodeAffinity {
	term := v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelTopologyZone,
		Operator: v1.NodeSelectorOpIn, Values: []string{d.pick("a", "b"), d.pick("b", "c")}}}}
	if d.chance(1, 3) {
		term.MatchExpressions = []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn,
			Values: []string{fmt.Sprintf("n%d", d.Intn(5))}}}
	}
	return &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}}}
}

func (d dice) volume(name, class string) *v1.PersistentVolume {
	out := &v1.PersistentVolume{TypeMeta: metav1.TypeMeta{Kind: "PersistentVolume", APIVersion: "v1"}, ObjectMeta: meta("", name)}
	out.Spec.StorageClassName = class
	out.Spec.AccessModes = []v1.PersistentVolumeAccessMode{d.accessMode()}
	out.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: amount("%dGi", d.between(1, 9))}
	out.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: d.pick(driver, driver, "other.example.com"), VolumeHandle: name}
	out.Status.Phase = v1.VolumeAvailable
	if d.chance(1, 2) {
		out.Spec.NodeAffinity = d.volumeAffinity()
	}
	out.Labels = map[string]string{}
	if d.chance(1, 4) {
		out.Labels[v1.LabelTopologyZone] = d.pick("a", "b", "a__b", "c")
	}
	return out
}

func (d dice) claim(ns, name, class string, mode v1.PersistentVolumeAccessMode) *v1.PersistentVolumeClaim {
	out := &v1.PersistentVolumeClaim{TypeMeta: metav1.TypeMeta{Kind: "PersistentVolumeClaim", APIVersion: "v1"}, ObjectMeta: meta(ns, name)}
	out.Spec.StorageClassName = &class
	out.Spec.AccessModes = []v1.PersistentVolumeAccessMode{mode}
	out.Spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: amount("%dGi", d.between(1, 6))}
	out.Status.Phase = v1.ClaimPending
	return out
}

func bindTogether(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) {
	volume.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace,
		Name: claim.Name, UID: claim.UID}
	volume.Status.Phase = v1.VolumeBound
	claim.Spec.VolumeName = volume.Name
	claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
	claim.Status.Phase = v1.ClaimBound
}

// Storage of a cluster. Claims bound-0, ... are bound (some to a volume that is gone), now-0 waits for a volume, late-0, ...
// and local-0, ... for a pod.
type storage struct {
	classes     []*storagev1.StorageClass
	volumes     []*v1.PersistentVolume
	claims      []*v1.PersistentVolumeClaim
	nodes       []*storagev1.CSINode
	drivers     []*storagev1.CSIDriver
	capacities  []*storagev1.CSIStorageCapacity
	attachments []*storagev1.VolumeAttachment
	bound       []*v1.PersistentVolumeClaim
	waiting     []*v1.PersistentVolumeClaim
}

func (d dice) storage(nodes []*v1.Node) *storage {
	out := &storage{classes: d.classes()}
	for i := d.between(2, 6); i > 0; i-- {
		volume := d.volume(fmt.Sprintf("pv-bound-%d", i), d.pick("now", "late"))
		claim := d.claim(d.namespace(), fmt.Sprintf("bound-%d", i), volume.Spec.StorageClassName, volume.Spec.AccessModes[0])
		bindTogether(volume, claim)
		if d.chance(14, 15) {
			out.volumes = append(out.volumes, volume)
		}
		out.claims = append(out.claims, claim)
		out.bound = append(out.bound, claim)
	}
	for i := d.between(0, 4); i > 0; i-- {
		out.volumes = append(out.volumes, d.volume(fmt.Sprintf("pv-free-%d", i), d.pick("local", "local", "late")))
	}
	for i := d.between(1, 3); i > 0; i-- {
		class := d.pick("late", "late", "local", "local", "now")
		claim := d.claim(d.namespace(), fmt.Sprintf("wait-%d", i), class, d.accessMode())
		if class == "late" && d.chance(1, 8) {
			claim.Annotations = map[string]string{"volume.kubernetes.io/selected-node": "n1"}
		}
		out.claims = append(out.claims, claim)
		out.waiting = append(out.waiting, claim)
	}
	d.csi(out, nodes)
	return out
}

func (d dice) csi(out *storage, nodes []*v1.Node) {
	made := &storagev1.CSIDriver{TypeMeta: metav1.TypeMeta{Kind: "CSIDriver", APIVersion: "storage.k8s.io/v1"}, ObjectMeta: meta("", driver)}
	made.Spec.StorageCapacity = pointer(d.chance(1, 2))
	if d.chance(2, 3) {
		out.drivers = append(out.drivers, made)
	}
	for i, node := range nodes {
		if d.chance(1, 3) {
			continue
		}
		csi := &storagev1.CSINode{TypeMeta: metav1.TypeMeta{Kind: "CSINode", APIVersion: "storage.k8s.io/v1"}, ObjectMeta: meta("", node.Name)}
		entry := storagev1.CSINodeDriver{Name: driver, NodeID: node.Name}
		if d.chance(2, 3) {
			entry.Allocatable = &storagev1.VolumeNodeResources{Count: pointer(int32(d.between(0, 3)))}
		}
		csi.Spec.Drivers = []storagev1.CSINodeDriver{entry}
		out.nodes = append(out.nodes, csi)
		if d.chance(1, 3) {
			out.attachments = append(out.attachments, d.attachment(i, node.Name, out.volumes))
		}
	}
	for i := d.Intn(4); i > 0; i-- {
		room := &storagev1.CSIStorageCapacity{TypeMeta: metav1.TypeMeta{Kind: "CSIStorageCapacity", APIVersion: "storage.k8s.io/v1"},
			ObjectMeta: meta("default", fmt.Sprintf("room-%d", i)), StorageClassName: "late"}
		room.NodeTopology = &metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelTopologyZone: d.pick("a", "b", "c")}}
		room.Capacity = pointer(amount("%dGi", d.between(0, 8)))
		if d.chance(1, 3) {
			room.MaximumVolumeSize = pointer(resource.MustParse("3Gi"))
		}
		out.capacities = append(out.capacities, room)
	}
}

func (d dice) attachment(i int, node string, volumes []*v1.PersistentVolume) *storagev1.VolumeAttachment {
	out := &storagev1.VolumeAttachment{TypeMeta: metav1.TypeMeta{Kind: "VolumeAttachment", APIVersion: "storage.k8s.io/v1"},
		ObjectMeta: meta("", fmt.Sprintf("attached-%d", i))}
	out.Spec.Attacher, out.Spec.NodeName = driver, node
	if len(volumes) > 0 {
		out.Spec.Source.PersistentVolumeName = &volumes[d.Intn(len(volumes))].Name
	}
	return out
}

func useClaim(pod *v1.Pod, claim *v1.PersistentVolumeClaim) {
	pod.Namespace = claim.Namespace
	pod.UID = meta(pod.Namespace, pod.Name).UID
	source := v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}
	pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: "v-" + claim.Name, VolumeSource: source})
}

// Disks that pods name themselves, and claims that are bound already.
func (d dice) useVolumes(pod *v1.Pod, from *storage) {
	if d.chance(1, 3) && len(from.bound) > 0 {
		useClaim(pod, from.bound[d.Intn(len(from.bound))])
	}
	if d.chance(1, 40) {
		useClaim(pod, &v1.PersistentVolumeClaim{ObjectMeta: meta(pod.Namespace, "missing")})
	}
	if !d.chance(1, 6) {
		return
	}
	source := v1.VolumeSource{}
	readOnly := d.chance(1, 2)
	switch d.Intn(4) {
	case 0:
		source.GCEPersistentDisk = &v1.GCEPersistentDiskVolumeSource{PDName: d.pick("d1", "d2"), ReadOnly: readOnly}
	case 1:
		source.AWSElasticBlockStore = &v1.AWSElasticBlockStoreVolumeSource{VolumeID: d.pick("d1", "d2"), ReadOnly: readOnly}
	case 2:
		source.ISCSI = &v1.ISCSIVolumeSource{TargetPortal: "10.0.0.1:3260", IQN: d.pick("iqn.2020-01.com.example:a", "iqn.2020-01.com.example:b"), ReadOnly: readOnly}
	case 3:
		source.RBD = &v1.RBDVolumeSource{CephMonitors: []string{d.pick("m1", "m2"), "m3"}, RBDImage: d.pick("i1", "i2"), ReadOnly: readOnly}
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: "disk", VolumeSource: source})
}
