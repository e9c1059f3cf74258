"""samix with Keras 3 on torch: `fit` takes a DataLoader, whose collate function mixes.

pip install keras;  python examples/integrations/keras_torch.py [steps]
"""

import os
import sys

os.environ["KERAS_BACKEND"] = "torch"  # read when Keras is imported

from samix import Mix  # isort: skip  (first, so that torchvision imports beside a CPU build of torch)
import keras
from keras import layers
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

from samix.data import Data, load_data, normalize

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 150
keras.utils.set_random_seed(0)
keras.config.set_image_data_format("channels_first")  # as torch has it, and as Mix wants it

data = load_data(Data(name="digits", size=14, view="none"))
x_train, x_test = (normalize(part.pictures, data.mean, data.std) for part in (data.train, data.test))
train = TensorDataset(x_train, data.train.labels)
mix = Mix({"mixup": 0.5, "fmix": 0.5}, classes=10)
drawn = RandomSampler(train, replacement=True, num_samples=50 * STEPS)
loader = DataLoader(train, 50, sampler=drawn, collate_fn=mix.collate)

convs = [layers.Conv2D(32, 5, strides=2, activation="relu"), layers.Conv2D(64, 3, strides=2)]
head = [layers.BatchNormalization(axis=1), layers.ReLU(), layers.Flatten(), layers.Dense(10)]
model = keras.Sequential([keras.Input((3, 14, 14)), *convs, *head])
# Soft rows want the categorical loss, not the sparse one.
loss = keras.losses.CategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.AdamW(2e-3), loss=loss)
model.fit(loader, shuffle=False, verbose=0)  # the loader shuffles

hits = model.predict(x_test.numpy(), verbose=0).argmax(axis=1) == data.test.labels.numpy()
print(f"accuracy after {STEPS} steps: {100 * hits.mean():.1f} % (chance {100 / 10:.1f} %)")
